"""What the linkage means for people: one finding for each cause, not for each file that suffers from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from envspec.audit.binaries import Binary, python_minor_of
from envspec.audit.closure import MissingLibrary, UndefinedSymbol
from envspec.audit.driver import DriverApi
from envspec.audit.linkage import Linkage, LinkResult
from envspec.audit.reach import Reach, Verdict, Way, owners_of
from envspec.data.compatibility import cuda_of_driver, driver_of_cuda
from envspec.data.system_libraries import OptionalRow, driver_library, optional_library
from envspec.elf import demangle
from envspec.report.findings import Finding, counted, error, note, warning
from envspec.torch_abi import exports as torch_exports
from envspec.torch_abi.names import torch_names
from envspec.torch_abi.variants import broken_members, families, family_of
from envspec.venv.owners import Owners

_SHOWN = 6


class LinkFindings:
    """Turns a linkage into findings."""

    def __init__(
        self, linkage: Linkage, owners: Owners, api: DriverApi, minimum_driver: str, reach: Reach
    ) -> None:
        self.linkage = linkage
        self.owners = owners
        self.api = api
        self.minimum_driver = minimum_driver
        self.reach = reach
        self.unused: dict[str, list[str]] = {}

    def all(self) -> Iterator[Finding]:
        """Make every finding."""
        results = self.linkage.results
        torch = self.owners.version("torch")
        broken = broken_members(results, lambda name: not results[name].holds, torch)
        yield from self._damaged()
        yield from self._versions(results[name] for name in broken)
        lacking = [results[name] for name in self._meant(broken) if results[name].missing]
        optional, needed = self._optional(lacking)
        yield from self._without_the_system(optional)
        incomplete = [
            results[name] for name in broken if not (results[name].missing or results[name].link.versions)
        ]
        yield from self._drivers_too_old(incomplete)
        incomplete = [one for one in map(self._without_driver_symbols, incomplete) if one.undefined]
        verdicts = self.reach.judge([*needed, *incomplete])
        failing = [v.result for v in verdicts if v.way is Way.FAILS]
        yield from self._libraries_missing([one for one in failing if one.missing])
        yield from self._symbols_undefined([one for one in failing if not one.missing])
        yield from self._loaded_behind([v for v in verdicts if v.way in (Way.LOADED_FIRST, Way.ORDER)])
        yield from self._by_name_only([v.result for v in verdicts if v.way is Way.BY_NAME])
        self._unused_variants([v for v in verdicts if v.way is Way.VARIANT])
        yield from self._variants(frozenset(broken))
        yield from self._driver()

    def _damaged(self) -> Iterator[Finding]:
        for file in self.linkage.files.damaged:
            owner = self.owners.of(file.name)
            if file.is_for_another_machine and python_minor_of(file.name) is None:
                # Packages ship helpers for 32-bit processes, which this interpreter never loads.
                yield note(
                    "library-machine",
                    self._package(owner) or file.name,
                    f"{self._short(file.name)} is not loaded here: {file.reason}",
                    evidence=[f"of {owner}" if owner else "no package owns it"],
                )
                continue
            yield error(
                "library-damaged",
                self._package(owner) or file.name,
                f"{self._short(file.name)} is no library that can be loaded: {file.reason}",
                evidence=[f"of {owner}" if owner else "no package owns it"],
                fix="build again; if it comes back, the file system or uv's cache is damaged: uv cache clean",
            )
        machine = self.linkage.loader.machine
        for binary in self.linkage.files.binaries:
            # Packages that ship builds for several machines name the machine in the path.
            if binary.elf.machine != machine and binary.elf.machine not in binary.name:
                owner = self.owners.of(binary.name)
                yield error(
                    "library-machine",
                    self._package(owner) or binary.name,
                    f"{self._short(binary.name)} is for {binary.elf.machine}, this environment is for {machine}",
                    evidence=[f"of {owner}" if owner else "no package owns it"],
                    fix=f"lock for {machine} and build again",
                )

    def _optional(
        self, results: Sequence[LinkResult]
    ) -> tuple[list[tuple[LinkResult, list[tuple[MissingLibrary, OptionalRow]]]], list[LinkResult]]:
        """Part the files that can do without all that they lack from those that are to be judged by how they are reached."""
        optional = []
        needed = []
        for one in results:
            rows = []
            for library in one.missing:
                row = optional_library(library.name, library.by.name)
                if row is not None and not self.reach.places(library.name, one):
                    rows.append((library, row))
            if rows:
                optional.append((one, rows))
            if len(rows) < len(one.missing):
                left = {library for library, _ in rows}
                needed.append(replace(one, missing=tuple(x for x in one.missing if x not in left)))
        return optional, needed

    def _without_the_system(
        self, files: Iterable[tuple[LinkResult, list[tuple[MissingLibrary, OptionalRow]]]]
    ) -> Iterator[Finding]:
        optional: dict[tuple[str, OptionalRow], list[tuple[LinkResult, MissingLibrary]]] = {}
        for one, rows in files:
            for library, row in rows:
                key = (self._package(self.owners.of(library.by.name)), row)
                optional.setdefault(key, []).append((one, library))
        for (package, row), who in sorted(
            optional.items(), key=lambda item: (item[0][0], item[0][1].library)
        ):
            names = sorted({self._short(one.binary.name) for one, _ in who})
            missing = sorted({library.name for _, library in who})
            yield note(
                "optional-library",
                package,
                f"{package}: {counted(len(names), 'file')} of it cannot be loaded without {row.project}, "
                "which this machine does not have",
                evidence=[row.why, f"files: {_some(names)}", f"missing: {_some(missing)}"],
                fix=f"install {row.project} if you need it",
            )

    def _libraries_missing(self, results: Sequence[LinkResult]) -> Iterator[Finding]:
        """One finding for each library and package that needs it; a file that is lost is one cause, whoever needs it."""
        present = frozenset(self.linkage.files.names)
        errors: dict[tuple[str, str], list[tuple[LinkResult, MissingLibrary]]] = {}
        for one in results:
            for library in one.missing:
                lost = self.owners.lost(library.name, present)
                owner = "" if lost else self.owners.of(library.by.name)
                errors.setdefault((library.name, owner), []).append((one, library))
        for (name, owner), who in sorted(errors.items()):
            yield self._library_missing(name, owner, who)

    def _loaded_behind(self, verdicts: Iterable[Verdict]) -> Iterator[Finding]:
        """Tell of files that load only behind libraries that no search path leads to."""
        groups: dict[tuple[str, Way, tuple[str, ...]], list[Verdict]] = {}
        for verdict in verdicts:
            owner = self.owners.of(verdict.result.binary.name)
            key = (owner, verdict.way, tuple(sorted(owners_of(verdict.first, self.owners))))
            groups.setdefault(key, []).append(verdict)
        for (owner, way, packages), who in sorted(groups.items(), key=lambda item: (item[0][0], item[0][2])):
            files = sorted(self._short(v.result.binary.name) for v in who)
            first = sorted({self._short(b.name) for v in who for b in v.first})
            evidence = [f"files: {_some(files)}", f"behind: {_some(first) if first else 'torch'}"]
            subject = self._package(owner) or files[0]
            if way is Way.LOADED_FIRST:
                yield note(
                    "library-order",
                    subject,
                    f"{owner or files[0]}: {counted(len(files), 'file')} of it can be loaded only behind libraries "
                    "that the package, or what it requires, loads first",
                    evidence=evidence,
                )
            else:
                yield warning(
                    "library-order",
                    subject,
                    f"{owner or files[0]}: {counted(len(files), 'file')} of it can be loaded only after {_some(packages)}, "
                    "which it does not require",
                    evidence=evidence,
                    fix=f"import {_some([self._package(p) for p in packages])} first, where these files are needed",
                )

    def _by_name_only(self, results: Iterable[LinkResult]) -> Iterator[Finding]:
        """Tell of programs, plugins and modules that are loaded only if somebody asks for them, and lack something."""
        packages: dict[str, list[LinkResult]] = {}
        for one in results:
            packages.setdefault(self.owners.of(one.binary.name), []).append(one)
        for owner, who in sorted(packages.items()):
            files = sorted(self._short(one.binary.name) for one in who)
            missing = sorted({library.name for one in who for library in one.missing})
            symbols = sorted({_symbol(symbol) for one in who if not one.missing for symbol in one.undefined})
            evidence = [f"files: {_some(files)}"]
            if missing:
                evidence.append(f"missing: {_some(missing, 8)}")
            if symbols:
                evidence.append(f"missing symbols: {_some(symbols)}")
            yield note(
                "optional-library",
                self._package(owner) or files[0],
                f"{owner or 'files of no package'}: {counted(len(files), 'file')} that nothing loads unless asked to "
                f"cannot be loaded without {_some(missing) if missing else 'symbols that nothing here defines'}",
                evidence=evidence,
                fix=f"install what brings {_some(missing)} if you need it" if missing else "",
            )

    def _unused_variants(self, verdicts: Iterable[Verdict]) -> None:
        groups: dict[tuple[str, str], list[LinkResult]] = {}
        for verdict in verdicts:
            owner = self.owners.of(verdict.result.binary.name)
            groups.setdefault((owner, verdict.variant), []).append(verdict.result)
        for (owner, variant), who in sorted(groups.items()):
            reasons = sorted(
                {library.name for one in who for library in one.missing}
                | {"symbols of something else" for one in who if not one.missing}
            )
            names = sorted(self._short(one.binary.name) for one in who)
            loads = f"{self._short(variant)} loads" if variant else "another one lacks less"
            self.unused.setdefault(owner, []).append(f"{_some(names, 2)}: {_some(reasons)}; {loads}")

    def _meant(self, broken: Sequence[str]) -> Iterator[str]:
        """Yield the broken files, less the variants that are for another environment: where one variant lacks only libraries
        that this environment ought to have, it is the one that was meant, and the others would fail anyway."""
        for members in families(broken).values():
            meant = [name for name in members if self._ought_to_load(self.linkage.results[name])]
            yield from meant or members

    def _ought_to_load(self, result: LinkResult) -> bool:
        present = frozenset(self.linkage.files.names)
        return all(
            self.reach.places(x.name, result) or self.owners.lost(x.name, present) for x in result.missing
        )

    def _library_missing(
        self, name: str, owner: str, who: list[tuple[LinkResult, MissingLibrary]]
    ) -> Finding:
        needing = sorted({library.by.name for _, library in who})
        affected = len({one.binary.name for one, _ in who})
        evidence = [f"needed by {self._short(file)}{self._of(file)}" for file in needing[:_SHOWN]]
        if len(needing) > _SHOWN:
            evidence.append(f"and by {len(needing) - _SHOWN} more")
        bringing = self.owners.lost(name, frozenset(self.linkage.files.names))
        near = self.reach.places(name, who[0][0])
        places = [b for b in self._places(name) if b in near or not self.owners.of(b.name)]
        for binary in places[:_SHOWN]:
            why = (
                f"which is for {binary.elf.machine}"
                if binary.elf.machine != self.linkage.loader.machine
                else "where the loader does not look"
            )
            evidence.append(f"it lies at {self._short(binary.name)}{self._of(binary.name)}, {why}")
        evidence += [
            f"{self.owners.of(b.name)} has it at {self._short(b.name)}, for itself"
            for b in self._places(name)
            if b not in places and self.owners.of(b.name)
        ][:_SHOWN]
        searched = self.linkage.loader.searched(who[0][1].by)
        evidence.append(
            f"searched: {', '.join(map(self._shown_directory, searched)) or 'nothing'}, the system"
        )
        relatives = [other for other in self._relatives(name) if other != name]
        if not places and relatives:
            evidence.append(f"the environment has {_some(relatives)} instead")
        if bringing and not places:
            fix = f"{' and '.join(bringing)} should bring it, but the file is not there: build again"
        elif places:
            fix = "build again: the packages' own places are on the search path"
        else:
            fix = f"add the package that brings {name} to the profile, or install it on the system"
        return error(
            "library-missing",
            name,
            f"{name} is not found; {counted(affected, 'file')}{f' of {owner}' if owner else ''} cannot be loaded without it",
            evidence=evidence,
            fix=fix,
        )

    def _places(self, name: str) -> list[Binary]:
        return [
            b
            for b in self.linkage.files.binaries
            if b.elf.soname == name or b.name.rpartition("/")[2] == name
        ]

    def _relatives(self, name: str) -> tuple[str, ...]:
        """Find libraries of the venv whose names differ from `name` in numbers only."""
        names = sorted({b.name.rpartition("/")[2] for b in self.linkage.files.binaries})
        return families(names).get(family_of(name), ())[:_SHOWN]

    def _versions(self, results: Iterable[LinkResult]) -> Iterator[Finding]:
        rows: dict[tuple[str, str], list[LinkResult]] = {}
        for one in results:
            for version in one.link.versions:
                rows.setdefault((version.found.name, version.version), []).append(one)
        for (found, wanted), who in sorted(rows.items()):
            files = sorted(one.binary.name for one in who)
            yield error(
                "symbol-version",
                found.rpartition("/")[2],
                f"{found} does not define {wanted}; {counted(len(files), 'file')} cannot be loaded with it",
                evidence=[f"needed by {self._short(file)}{self._of(file)}" for file in files[:_SHOWN]],
                fix="run on a system with a newer C library, or pin packages built for an older one"
                if wanted.startswith("GLIBC")
                else "pin the two packages to releases that belong together",
            )

    def _symbols_undefined(self, results: Sequence[LinkResult]) -> Iterator[Finding]:
        packages: dict[str, list[LinkResult]] = {}
        for one in results:
            packages.setdefault(self.owners.of(one.binary.name), []).append(one)
        for owner, members in sorted(packages.items()):
            yield self._symbols_of_package(owner, members)

    def _without_driver_symbols(self, one: LinkResult) -> LinkResult:
        left = tuple(symbol for symbol in one.undefined if not self._is_the_drivers(symbol.name))
        return replace(one, undefined=left)

    def _drivers_too_old(self, results: Iterable[LinkResult]) -> Iterator[Finding]:
        for one in results:
            of_driver = [symbol.name for symbol in one.undefined if self._is_the_drivers(symbol.name)]
            if of_driver:
                yield self._driver_too_old(one, of_driver)

    def _is_the_drivers(self, symbol: bytes) -> bool:
        return any(symbol in stand_in.elf.symbols.exports for stand_in in self.linkage.driver.values())

    def _driver_too_old(self, one: LinkResult, symbols: Sequence[bytes]) -> Finding:
        """Report that this machine's driver lacks symbols that the toolkit's headers know."""
        newest = self.api.newest(symbols)
        cuda = newest[1] if newest else ""
        driver = driver_of_cuda(cuda)
        return error(
            "driver-symbol",
            self._package(self.owners.of(one.binary.name)) or one.binary.name,
            f"{self._short(one.binary.name)} asks this machine's driver for {counted(len(symbols), 'symbol')} that it lacks",
            evidence=[name.decode("latin-1") for name in sorted(symbols)[:_SHOWN]]
            + ([f"{newest[0]} came with CUDA {cuda}"] if newest else []),
            fix=f"install driver {driver} or newer" if driver else "install a newer driver",
        )

    def _symbols_of_package(self, owner: str, members: list[LinkResult]) -> Finding:
        machine = self.linkage.loader.machine
        torch = self.owners.version("torch")
        evidence: list[str] = []
        total: set[bytes] = set()
        fixes = []
        for one in sorted(members, key=lambda one: one.binary.name):
            names = {symbol.name for symbol in one.undefined}
            total |= names
            of_torch = torch_names(names)
            line = self._short(one.binary.name)
            if of_torch:
                fits = torch_exports.load().fitting_releases(one.binary.elf.symbols.imports, machine)
                line += f" needs torch {_releases(fits)}"
            evidence.append(line)
            evidence += [
                f"  missing: {_symbol(symbol)}{self._provider(symbol, of_torch)}"
                for symbol in one.undefined[:_SHOWN]
            ]
            if len(one.undefined) > _SHOWN:
                evidence.append(f"  and {len(one.undefined) - _SHOWN} more")
            if of_torch and owner:
                fixes.append(f"pin a version that fits: envspec match {self._package(owner)} --torch {torch}")
            files = sorted({symbol.file for symbol in one.undefined if symbol.file})
            if files:
                fixes.append(f"pin the packages of {_some(files)} and of {line.split()[0]} to one release")
        what = owner or self._short(members[0].binary.name)
        beside = f" with torch {torch}" if any("needs torch" in line for line in evidence) else ""
        return error(
            "symbol-missing",
            self._package(owner) or what,
            f"{what} cannot be loaded{beside}: {counted(len(total), 'symbol')} missing",
            evidence=evidence,
            fix=fixes[0] if fixes else "build again, or pin a release that belongs to what is installed",
        )

    def _provider(self, symbol: UndefinedSymbol, of_torch: frozenset[bytes]) -> str:
        """Say where else the symbol is defined: a torch release, or a library that is not loaded with the file."""
        if symbol.name in of_torch:
            table = torch_exports.load()
            return (
                f" (in torch {_releases(table.releases_exporting(symbol.name, self.linkage.loader.machine))})"
            )
        if symbol.file:
            found = self._places(symbol.file)
            if found:
                return f" (not in {self._short(found[0].name)}{self._of(found[0].name)})"
        for binary in self.linkage.files.binaries:
            if symbol.name in binary.elf.symbols.exports:
                return f" (defined by {self._short(binary.name)}{self._of(binary.name)}, which is not loaded with it)"
        return ""

    def _variants(self, broken: frozenset[str]) -> Iterator[Finding]:
        """Say which variants are for something else: they were linked too, and are no faults."""
        results = self.linkage.results
        packages = {owner: list(lines) for owner, lines in self.unused.items()}
        for members in families(results).values():
            idle = [name for name in members if not results[name].holds and name not in broken]
            if idle:
                sound = next((name for name in members if results[name].holds), None)
                reasons = sorted(
                    {library.name for name in idle for library in results[name].missing}
                    | {"symbols of another release" for name in idle if not results[name].missing}
                )
                packages.setdefault(self.owners.of(idle[0]), []).append(
                    f"{_some([self._short(name) for name in idle], 2)}: {_some(reasons)}; "
                    + (f"{self._short(sound)} loads" if sound else "none is for this torch")
                )
        for owner, lines in sorted(packages.items()):
            yield note(
                "variant-unused",
                self._package(owner),
                f"{owner} brings variants that are for another environment and are not loaded in this one",
                evidence=lines,
            )

    def _driver(self) -> Iterator[Finding]:
        libraries: dict[str, list[LinkResult]] = {}
        for one in self.linkage.results.values():
            for library in one.driver:
                if library.by is one.binary:
                    libraries.setdefault(library.name, []).append(one)
        for name, who in sorted(libraries.items()):
            row = driver_library(name)
            assert row is not None
            asked = sorted({symbol for one in who for symbol in one.asked})
            evidence = [f"{_some(sorted(self._short(one.binary.name) for one in who))}"]
            newest = self.api.newest(asked)
            if newest is not None:
                symbol, cuda = newest
                driver = driver_of_cuda(cuda)
                since = f", driver {driver}" if driver else ""
                evidence.append(
                    f"the newest of {len(asked)} symbols asked of it: {symbol}, since CUDA {cuda}{since}"
                )
                has = cuda_of_driver(self.minimum_driver) if self.minimum_driver else None
                if has is not None and _version(has) < _version(cuda):
                    yield warning(
                        "driver-symbol",
                        name,
                        f"{symbol} came with CUDA {cuda}; the profile admits driver {self.minimum_driver} (CUDA {has})",
                        evidence=evidence,
                        fix=f'minimum-driver = "{driver}"' if driver else "raise gpu.minimum-driver",
                    )
            elif asked:
                evidence.append(f"{len(asked)} symbols are asked of it; since which driver is unknown")
            yield note(
                "driver-library",
                name,
                f"{name} ({row.what}) is asked of the driver by {counted(len(who), 'file')}; "
                "this machine has none",
                evidence=evidence,
            )

    def _short(self, name: str) -> str:
        return name.removeprefix(self.owners.prefix)

    def _of(self, name: str) -> str:
        owner = self.owners.of(name)
        return f" ({owner})" if owner else ""

    def _package(self, owner: str) -> str:
        return owner.partition(" ")[0]

    def _shown_directory(self, path: str) -> str:
        root = self.linkage.files.root + "/"
        return path.removeprefix(root).removeprefix(self.owners.prefix)


def _symbol(symbol: UndefinedSymbol) -> str:
    name = demangle(symbol.name)
    return f"{name}, version {symbol.version}" if symbol.version else name


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _some(names: Sequence[str], most: int = 4) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def _releases(releases: tuple[str, ...]) -> str:
    if not releases:
        return "none that envspec knows"
    return ", ".join(releases) if len(releases) <= 4 else f"{releases[0]} to {releases[-1]}"
