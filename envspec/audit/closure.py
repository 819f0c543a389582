"""What is loaded together with a file, and which strong symbols then have no definition.

This is the dynamic loader's own algorithm, done statically: libraries are searched breadth first, a name that is already loaded is
not searched again, and a symbol is looked for in the global scope and then in everything that was loaded with the file.
Each file is looked at for its own imports; those of its dependencies are looked at with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from envspec.audit.binaries import Binary
from envspec.audit.loader import Loader


class MissingLibrary(NamedTuple):
    """Describes a DT_NEEDED entry `name` of `by` that the loader does not find."""

    name: str
    by: Binary


class UndefinedSymbol(NamedTuple):
    """Describes an undefined symbol; `version` and `file` (who should define it) are empty if it has no version."""

    name: bytes
    version: str
    file: str


class UndefinedVersion(NamedTuple):
    """Describes a symbol version that the found library `file` does not define: the loader refuses the file for it."""

    file: str
    version: str
    found: Binary


@dataclass(frozen=True)
class Process:
    """Says what a process has loaded before: libraries by the names they answer to, and those of the global scope."""

    names: Mapping[str, Binary] = field(default_factory=dict)
    visible: tuple[Binary, ...] = ()


@dataclass(frozen=True)
class Closure:
    """Describes a file, everything that is loaded with it in the loader's order (itself first), and what is not found."""

    root: Binary
    libraries: tuple[Binary, ...]
    missing: tuple[MissingLibrary, ...]
    names: Mapping[str, Binary]


@dataclass(frozen=True)
class Link:
    """Holds the outcome for one file in one process."""

    closure: Closure
    undefined: tuple[UndefinedSymbol, ...]
    versions: tuple[UndefinedVersion, ...]

    @property
    def holds(self) -> bool:
        """Tell whether the file can be loaded with all its symbols."""
        return not (self.closure.missing or self.undefined or self.versions)


def load(root: Binary, loader: Loader, before: Process) -> Closure:
    """Find what loading `root` into a process brings in."""
    names = dict(before.names)
    _answer(names, root)
    libraries: dict[Binary, tuple[Binary, ...]] = {root: ()}
    missing: list[MissingLibrary] = []
    queue = [root]
    for binary in queue:
        above = (binary, *libraries[binary])
        for name in binary.elf.needed:
            found = names.get(name)
            if found is None:
                found = loader.find(name, binary, libraries[binary])
                if found is None:
                    missing.append(MissingLibrary(name, binary))
                    continue
                names[name] = found
                _answer(names, found)
            if found not in libraries:
                libraries[found] = above
                queue.append(found)
    return Closure(root, tuple(libraries), tuple(missing), names)


def _answer(names: dict[str, Binary], binary: Binary) -> None:
    if binary.elf.soname:
        names.setdefault(binary.elf.soname, binary)


def after(before: Process, closures: Iterable[Closure], *, visible: bool) -> Process:
    """Return the process once these were loaded; `visible` if they were loaded with RTLD_GLOBAL."""
    names = dict(before.names)
    shown = dict.fromkeys(before.visible)
    for closure in closures:
        for name, binary in closure.names.items():
            names.setdefault(name, binary)
        if visible:
            shown.update(dict.fromkeys(closure.libraries))
    return Process(names, tuple(shown))


def link(closure: Closure, before: Process) -> Link:
    """Look for each strong symbol of a file whose libraries were found."""
    root = closure.root
    scope = tuple(dict.fromkeys((*before.visible, *closure.libraries)))
    return Link(closure, undefined_symbols(root, scope), tuple(_versions(root, closure)))


def _versions(root: Binary, closure: Closure) -> Iterable[UndefinedVersion]:
    for need in root.elf.version_needs:
        found = closure.names.get(need.file)
        if found is None or need.weak or not found.elf.version_definitions:
            continue
        if all(offered.version != need.version for offered in found.elf.version_definitions):
            yield UndefinedVersion(need.file, need.version, found)


def undefined_symbols(root: Binary, scope: tuple[Binary, ...]) -> tuple[UndefinedSymbol, ...]:
    """Find the strong undefined symbols of `root` that nothing in the scope defines."""
    found = []
    # The order does not change the outcome: small tables first, the large ones only for what is left.
    others = sorted((b for b in scope if b is not root), key=_table_size)
    named = {b.elf.soname: (b,) for b in others}
    for (version, file), names in root.elf.symbols.imports_by_version.items():
        left = names
        for binary in (*named.get(file, ()), *others):
            left -= _offered(binary, version, left)
            if not left:
                break
        found += [UndefinedSymbol(name, version, file) for name in sorted(left)]
    return tuple(found)


def _table_size(binary: Binary) -> int:
    return len(binary.elf.symbols.entries)


def _offered(binary: Binary, version: str, names: frozenset[bytes]) -> frozenset[bytes]:
    """Find the names that `binary` defines for a reference to `version`; a library without versions answers to any.

    Of a large table only those of `names` are looked for.
    """
    symbols = binary.elf.symbols
    if version and symbols.offered:
        return symbols.exports_by_version.get(version, frozenset())
    return symbols.exported(names)
