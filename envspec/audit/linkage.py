"""Every file of a venv linked statically as the process would meet it: alone, behind the packages that load libraries for
others, or as a part of what loads it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from envspec.audit.binaries import Binary, VenvFiles
from envspec.audit.closure import (
    Closure,
    Link,
    MissingLibrary,
    Process,
    UndefinedSymbol,
    after,
    link,
    load,
    undefined_symbols,
)
from envspec.audit.loader import Loader
from envspec.data.system_libraries import PreloadRow, driver_library, preloads


@dataclass(frozen=True)
class LinkResult:
    """Describes one file's outcome: what it lacks in the end, and behind which packages (`preloaded`) it was loaded.

    `missing` are libraries it cannot do without, itself or through what it needs; `driver` are those that only the driver brings,
    with the symbols asked of them in `asked`. `siblings` are files of its own directory that its package loads first, `within`
    is a library that always loads it: where they are, it cannot stand alone.
    """

    binary: Binary
    link: Link
    missing: tuple[MissingLibrary, ...] = ()
    undefined: tuple[UndefinedSymbol, ...] = ()
    driver: tuple[MissingLibrary, ...] = ()
    asked: tuple[bytes, ...] = ()
    preloaded: tuple[str, ...] = ()
    siblings: tuple[Binary, ...] = ()
    within: Binary | None = None

    @property
    def holds(self) -> bool:
        """Tell whether the file loads with all its own symbols, once there is a driver."""
        return not (self.missing or self.undefined or self.link.versions)


@dataclass(frozen=True)
class Linkage:
    """Holds all outcomes, and what the process was taken to be."""

    files: VenvFiles
    loader: Loader
    python: Process
    driver: Mapping[str, Binary]
    results: Mapping[str, LinkResult]
    linker: _Linker

    def behind(self, result: LinkResult, libraries: Iterable[Binary], *, torch: bool) -> LinkResult:
        """Link a file once more in a process that has loaded these libraries by path, for everyone to see, and with `torch`
        has imported torch before."""
        return self.linker.behind_libraries(result, libraries, torch=torch)

    def loads(self, result: LinkResult) -> bool:
        """Tell whether loading the file with all symbols bound succeeds, its dependencies' symbols included."""
        if not result.holds or result.binary.elf.machine != self.loader.machine:
            return False
        scope = scope_of(result.link.closure, self.python)
        for binary in result.link.closure.libraries:
            inner = self.results.get(binary.name)
            if (
                inner is not None
                and (inner.undefined or inner.link.versions)
                and undefined_symbols(binary, scope)
            ):
                return False
        return True


def scope_of(closure: Closure, process: Process) -> tuple[Binary, ...]:
    """Return the files in which the symbols of a closure are looked for, in order."""
    return tuple(dict.fromkeys((*process.visible, *closure.libraries)))


class _Linker:
    def __init__(
        self,
        files: VenvFiles,
        loader: Loader,
        python: Process,
        stand_ins: Mapping[str, Binary],
        site: str,
    ) -> None:
        self.loader = loader
        self.python = python
        self.stand_ins = stand_ins
        self.processes: dict[tuple[str, ...], Process] = {(): python}
        self.prefix = site + "/"
        self.in_site = {
            b.name.removeprefix(self.prefix): b for b in files.binaries if b.name.startswith(self.prefix)
        }
        self.in_directory = {(b.directory, b.name.rpartition("/")[2]): b for b in files.binaries}
        self.rows = [row for row in preloads() if self.preloaded(row, row.globally + row.locally)]

    def preloaded(self, row: PreloadRow, patterns: Iterable[str]) -> list[Binary]:
        return [self.in_site[name] for p in patterns for name in sorted(fnmatch.filter(self.in_site, p))]

    def process_behind(self, rows: tuple[PreloadRow, ...]) -> Process:
        key = tuple(row.package for row in rows)
        if key not in self.processes:
            before = self.process_behind(rows[:-1])
            row = rows[-1]
            for binary in self.preloaded(row, row.globally):
                before = after(before, [load(binary, self.loader, before)], visible=True)
            for binary in self.preloaded(row, row.locally):
                before = after(before, [load(binary, self.loader, before)], visible=False)
            self.processes[key] = before
        return self.processes[key]

    def alone(self, binary: Binary) -> LinkResult:
        """Link the file in a fresh interpreter, or behind the packages that load for it what it does not find."""
        if binary.is_program:
            return self.outcome(load(binary, self.loader, Process()), Process(), ())
        file = binary.name.removeprefix(self.prefix)
        wanted: set[str] = set()
        rows: tuple[PreloadRow, ...] = ()
        while True:
            before = self.process_behind(rows)
            closure = load(binary, self.loader, before)
            wanted |= {missing.name for missing in closure.missing}
            more = tuple(row for row in self.rows if row in rows or row.comes_before(file, wanted))
            if more == rows:
                break
            rows = more
        preloaded = tuple(row.package for row in rows)
        siblings = self.siblings(closure)
        if siblings:
            before = self.behind(before, siblings)
            closure = load(binary, self.loader, before)
        return replace(self.outcome(closure, before, preloaded), siblings=siblings)

    def siblings(self, closure: Closure) -> tuple[Binary, ...]:
        """Find libraries that a file needs, does not find, and has beside it: a package that gives its libraries no search path
        loads them itself, by path, in order."""
        root = closure.root
        return tuple(
            found
            for missing in closure.missing
            if missing.by is root and (found := self.in_directory.get((root.directory, missing.name)))
        )

    def behind(self, before: Process, siblings: Iterable[Binary]) -> Process:
        """Return a process once these were loaded by path: they answer to their file names, too."""
        for sibling in siblings:
            before = after(before, [load(sibling, self.loader, before)], visible=False)
            names = {**before.names, sibling.name.rpartition("/")[2]: sibling}
            before = Process(names, before.visible)
        return before

    def behind_libraries(self, result: LinkResult, libraries: Iterable[Binary], *, torch: bool) -> LinkResult:
        """Link a file again behind these libraries, in their order."""
        rows = tuple(
            row for row in self.rows if row.package in result.preloaded or (torch and row.package == "torch")
        )
        before = self.process_behind(rows)
        for library in (*result.siblings, *libraries):
            before = after(before, [load(library, self.loader, before)], visible=True)
            before = Process({library.name.rpartition("/")[2]: library, **before.names}, before.visible)
        closure = load(result.binary, self.loader, before)
        return self.outcome(closure, before, tuple(row.package for row in rows))

    def outcome(self, closure: Closure, before: Process, preloaded: tuple[str, ...]) -> LinkResult:
        """Set aside what only the driver brings. Symbols are looked for only where no other library is missing: the loader
        does not get to them otherwise."""
        driver = tuple(library for library in closure.missing if driver_library(library.name))
        missing = tuple(library for library in closure.missing if not driver_library(library.name))
        found = Link(closure, (), ()) if missing else link(closure, before)
        left = list(found.undefined)
        asked: set[bytes] = set()
        for name in {x.name for x in driver}:
            mine = {symbol.name for symbol in left if self.is_the_drivers(name, symbol.name)}
            asked |= mine
            left = [symbol for symbol in left if symbol.name not in mine]
        return LinkResult(closure.root, found, missing, tuple(left), driver, tuple(sorted(asked)), preloaded)

    def is_the_drivers(self, library: str, symbol: bytes) -> bool:
        """Tell whether a driver library that is not here would define a symbol."""
        stand_in = self.stand_ins.get(library)
        if stand_in is not None:
            return symbol in stand_in.elf.symbols.exports
        row = driver_library(library)
        return row is not None and re.fullmatch(row.symbols, symbol.decode("latin-1")) is not None

    def within(self, result: LinkResult, parents: list[LinkResult]) -> LinkResult:
        """Link the file as part of what loads it: it needs neither search path nor symbols of its own then."""
        binary = result.binary
        for parent in parents:
            closure = parent.link.closure
            missing = [x for x in closure.missing if x.by is binary and not driver_library(x.name)]
            scope = scope_of(closure, self.processes[parent.preloaded])
            if missing or undefined_symbols(binary, scope):
                return result
        if not parents:
            return result
        return replace(result, missing=(), undefined=(), within=parents[0].binary)


def link_statically(
    files: VenvFiles, loader: Loader, python: Process, stand_ins: Mapping[str, Binary], site_packages: str
) -> Linkage:
    """Link every binary. `stand_ins` answer for driver libraries that this machine lacks; `site_packages` is relative."""
    linker = _Linker(files, loader, python, stand_ins, site_packages)
    results = {binary.name: linker.alone(binary) for binary in files.binaries}
    broken = {name for name, one in results.items() if one.missing or one.undefined}
    parents: dict[str, list[LinkResult]] = {name: [] for name in broken}
    for one in results.values():
        for binary in one.link.closure.libraries[1:]:
            if binary.name in broken and (not one.missing or one.binary.name in broken):
                parents[binary.name].append(one)
    sound = {name: [p for p in found if not (p.missing or p.undefined)] for name, found in parents.items()}
    for name in broken:
        results[name] = linker.within(results[name], sound[name] or parents[name])
    return Linkage(files, loader, python, stand_ins, results, linker)
