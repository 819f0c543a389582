"""How a library is reached, and so what it means that it cannot be loaded from where it lies.

An error is what certainly fails when a package is used as it is meant to be used. A library may be loaded behind others that
its package opens first, by path; it may be a variant beside one that loads; it may be a plugin that nobody opens here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from envspec.audit.binaries import Binary
from envspec.audit.linkage import Linkage, LinkResult
from envspec.data.system_libraries import is_toolkit_library, preloads
from envspec.torch_abi.names import torch_names
from envspec.venv.imports import Imports, imports_of
from envspec.venv.owners import Owners
from envspec.venv.requirements import Requirements

_ROUNDS = 8
_ALIKE = 0.75
_TAG = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{1,10}\d+[a-z]?(?![A-Za-z0-9])")
_FOR_PYTHON = re.compile(r"\.cpython-(\d)(\d+)(t?)\b[^/]*\.so\Z")
_MODULE = re.compile(r"(?:\.cpython-[^/.]*|\.abi3)?\.so\Z")
# What every library of a C or C++ compiler, every Cython module and every fat binary exports.
_BOILERPLATE = re.compile(
    rb"PyInit_|_init\Z|_fini\Z|__pyx_|_Z[A-Z]*(?:St|NSt|NKSt|9__gnu|N9__gnu)|__cuda|__bss|_edata|_end\Z"
)


class Way(Enum):
    """Says how a file is judged that does not load from where it lies."""

    FAILS = "it is needed and cannot be loaded"
    LOADED_FIRST = "it loads behind libraries of its package, or of what that requires"
    ORDER = "it loads behind a library of a package that its own does not require"
    VARIANT = "another variant of it loads"
    BY_NAME = "it is opened by name only, where somebody asks for it"


class Verdict(NamedTuple):
    """Describes a file's way, its outcome behind the libraries `first`, and the variant that loads in its place, if one does."""

    way: Way
    result: LinkResult
    first: tuple[Binary, ...] = ()
    variant: str = ""


class Reach:
    """Judges the files of a linkage that do not load. `minor` is the Python minor of the environment."""

    def __init__(self, linkage: Linkage, owners: Owners, site: Path, minor: str) -> None:
        self.linkage = linkage
        self.owners = owners
        self.site = site
        self.minor = minor
        self.requirements = Requirements(site)
        self._names = frozenset(linkage.files.names)
        self._torch = bool(owners.version("torch"))
        self._imports: dict[str, Imports] = {}
        self._families: dict[str, list[str]] = {}
        self._by_name: dict[str, list[Binary]] = {}
        for binary in linkage.files.binaries:
            self._families.setdefault(_tagless(binary.name), []).append(binary.name)
            for name in {binary.elf.soname, binary.name.rpartition("/")[2]} - {""}:
                self._by_name.setdefault(name, []).append(binary)

    def judge(self, results: Iterable[LinkResult]) -> list[Verdict]:
        """Judge files; of variants of which none loads the one that lacks least stands for all."""
        verdicts = [self._judged(one) for one in results]
        failing: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            if verdict.way is Way.FAILS:
                failing.setdefault(_tagless(verdict.result.binary.name), []).append(verdict)
        for members in failing.values():
            least = min(members, key=_lack)
            for verdict in members:
                other = verdict.result.binary
                # Siblings that lack the same are one fault, told once with all its files.
                if _lack(verdict) > _lack(least) and _alike(least.result.binary, other):
                    verdicts[verdicts.index(verdict)] = verdict._replace(way=Way.VARIANT)
        return verdicts

    def places(self, name: str, result: LinkResult) -> list[Binary]:
        """Find the libraries of a name in the file's own package and in what it requires, the own ones first."""
        own = self.owners.package_of(result.binary.name)
        near = self._near(own)
        found = [
            b for b in self._by_name.get(name, ()) if self._package(b) in near and b is not result.binary
        ]
        return sorted(found, key=lambda b: (self._package(b) != own, _distance(b, result.binary), b.name))

    def _near(self, package: str) -> frozenset[str]:
        return self.requirements.of(package) | {package} if package else frozenset()

    def _package(self, binary: Binary) -> str:
        return self.owners.package_of(binary.name)

    def _judged(self, result: LinkResult) -> Verdict:
        binary = result.binary
        if binary.is_program:
            return Verdict(Way.BY_NAME, result)
        if stand_in := self._for_this_python(binary.name):
            return Verdict(Way.VARIANT, result, variant=stand_in)
        if any(self.owners.lost(x.name, self._names) for x in result.missing):
            return Verdict(Way.FAILS, result)
        near, first = self._behind(result, far=False)
        if near.holds:
            return Verdict(Way.LOADED_FIRST, near, first)
        if variant := self._variant(binary):
            return Verdict(Way.VARIANT, result, variant=variant)
        then, first = self._behind(result, far=True)
        if then.holds:
            return Verdict(Way.ORDER, then, first)
        return Verdict(Way.FAILS if self._is_needed(near) else Way.BY_NAME, near)

    def _behind(self, result: LinkResult, *, far: bool) -> tuple[LinkResult, tuple[Binary, ...]]:
        """Link a file behind the libraries that it lacks: of its own package and what that requires, or with `far` of any."""
        own = self.owners.package_of(result.binary.name)
        torch = "torch" in self._near(own)
        first: list[Binary] = []
        then = self.linkage.behind(result, (), torch=True) if torch else result
        for _ in range(_ROUNDS):
            if then.holds or then.link.versions:
                break
            found = [b for b in dict.fromkeys(self._lacking(then, far)) if b not in first]
            if not found:
                break
            # What the ones before need comes before them.
            first = [*found, *first]
            then = self.linkage.behind(result, first, torch=torch)
        return then, tuple(first)

    def _lacking(self, then: LinkResult, far: bool) -> Iterator[Binary]:
        fitting = self.linkage.loader.machine
        for missing in then.missing:
            places = self.places(missing.name, then)
            if far and not places:
                places = [
                    b for b in self._by_name.get(missing.name, ()) if not self._is_private(b, missing.by)
                ]
            places = [b for b in places if b.elf.machine == fitting]
            if places:
                yield places[0]
        if then.missing or not then.undefined:
            return
        wanted = frozenset(symbol.name for symbol in then.undefined)
        near = self._near(self.owners.package_of(then.binary.name))
        offers = [
            (len(offered), b)
            for b in self.linkage.files.binaries
            if b is not then.binary
            and b.elf.machine == fitting
            and not b.is_program
            and (self._package(b) in near)
            and (offered := wanted & b.elf.symbols.exported(wanted))
        ]
        if offers:
            yield max(offers, key=lambda offer: (offer[0], -_distance(offer[1], then.binary), offer[1].name))[
                1
            ]

    def _is_private(self, library: Binary, by: Binary) -> bool:
        """Tell whether a library lies where its own package alone looks: nobody imports that package to load it for others."""
        package = self._package(library)
        if not package or package == self._package(by):
            return False
        directory = library.name.rpartition("/")[0]
        beside = any(
            b is not library and b.name.rpartition("/")[0] == directory and _initializer(b)
            for b in self.linkage.files.binaries
        )
        return beside or bool(re.search(r"\.libs(?:/|\Z)", directory))

    def _for_this_python(self, name: str) -> str:
        """Return the module that this interpreter takes in place of one that names another Python; empty if it is for this one."""
        tag = _FOR_PYTHON.search(name)
        if tag is None or (f"{tag[1]}.{tag[2]}" == self.minor and not tag[3]):
            return ""
        stem = name[: tag.start()]
        plain = self.minor.replace(".", "")
        for other in self.linkage.files.names:
            if other.startswith(stem) and (
                other in (f"{stem}.so", f"{stem}.abi3.so") or other.startswith(f"{stem}.cpython-{plain}-")
            ):
                return other
        return ""

    def _variant(self, binary: Binary) -> str:
        """Return a file that loads, whose name differs in tags only, or which bears the name in a sibling directory, and
        which exports the same."""
        others = [name for name in self._families[_tagless(binary.name)] if name != binary.name]
        directory, _, base = binary.name.rpartition("/")
        above = directory.rpartition("/")[0]
        others += [
            b.name
            for b in self._by_name.get(base, ())
            if b is not binary and b.name.rpartition("/")[0].rpartition("/")[0] == above
        ]
        results = self.linkage.results
        for name in others:
            if results[name].holds and _alike(binary, results[name].binary):
                return name
        return ""

    def _is_needed(self, result: LinkResult) -> bool:
        """Tell whether something that people use is lost with a file."""
        binary = result.binary
        if self._is_imported(binary):
            return True
        undefined = [symbol.name for symbol in result.undefined]
        if undefined and self._torch and torch_names(undefined):
            return True
        if result.missing:
            names = {x.name for x in result.missing}
            return all(is_toolkit_library(x) or (self._torch and _is_torch(x)) for x in names)
        # What a module needs is needed, too: only its own symbols were looked for with the module.
        return any(
            binary in one.link.closure.libraries[1:] and self._is_imported(one.binary)
            for one in self.linkage.results.values()
        )

    def _is_imported(self, binary: Binary) -> bool:
        """Tell whether a file is a module that people import: a top-level one, one directly in its top package, or one that its
        package's `__init__` imports whatever happens."""
        if not _initializer(binary):
            return False
        name = binary.name.removeprefix(self.owners.prefix)
        parts = _MODULE.sub("", name).split("/")
        if len(parts) == 1 or any("." in part or "-" in part for part in parts):
            return len(parts) == 1
        imports = self._imports.get(parts[0])
        if imports is None:
            imports = self._imports[parts[0]] = imports_of(self.site, parts[0])
        module = ".".join(parts)
        return module in imports.always or (len(parts) == 2 and module not in imports.tried)


def _is_torch(name: str) -> bool:
    return any(row.package == "torch" and row.comes_before("", [name]) for row in preloads())


def _tagless(name: str) -> str:
    return _TAG.sub("*", name)


def _initializer(binary: Binary) -> bool:
    """Tell whether a file is an extension module: it exports the function that Python calls for its name."""
    stem = _MODULE.sub("", binary.name.rpartition("/")[2])
    wanted = f"PyInit_{stem}".encode()
    return wanted in binary.elf.symbols.exported(frozenset([wanted]))


def _alike(one: Binary, other: Binary) -> bool:
    """Tell whether two files export the same but for what everything exports: most of what the smaller one has."""
    mine, its = _meant_exports(one), _meant_exports(other)
    smaller = min(len(mine), len(its))
    if not smaller:
        return one.name.rpartition("/")[2] != other.name.rpartition("/")[2] and not (mine or its)
    return len(mine & its) >= _ALIKE * smaller


def _meant_exports(binary: Binary) -> frozenset[bytes]:
    return frozenset(name for name in binary.elf.symbols.exports if not _BOILERPLATE.match(name))


def _lack(verdict: Verdict) -> int:
    return len({x.name for x in verdict.result.missing})


def _distance(one: Binary, other: Binary) -> int:
    """Count the directories between two files."""
    mine, its = one.name.split("/")[:-1], other.name.split("/")[:-1]
    common = 0
    for left, right in zip(mine, its, strict=False):
        if left != right:
            break
        common += 1
    return len(mine) + len(its) - 2 * common


def owners_of(first: Sequence[Binary], owners: Owners) -> tuple[str, ...]:
    """Return the packages of libraries, each once, as `name version`."""
    return tuple(dict.fromkeys(filter(None, (owners.of(b.name) for b in first))))
