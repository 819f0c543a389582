"""What is known about one ELF file."""

from __future__ import annotations

from dataclasses import dataclass, field

from envspec.elf.errors import ElfIdentity, ElfIncomplete
from envspec.elf.symbols import SymbolTable
from envspec.elf.versions import VersionDefinition, VersionNeed


@dataclass(frozen=True)
class Dynamic:
    """Holds what the loader reads in .dynamic. Empty strings and tuples where the file says nothing.

    `rpath` and `runpath` are the elements between the colons, unexpanded (`$ORIGIN` stands as it is).
    """

    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    version_needs: tuple[VersionNeed, ...] = ()
    version_definitions: tuple[VersionDefinition, ...] = ()


@dataclass(frozen=True)
class Elf:
    """Describes one ELF64 little-endian file.

    `dynamic` is None if the file has no .dynamic at all (an object file, a static program, a cubin) — or if
    `partial` is true: then only the first part of the file was at hand, and it held the symbols but not
    .dynamic. What a partial file cannot tell raises ElfIncomplete.
    `unclaimed` are, for a partial file, the strings of .dynstr at hand that are no symbol's name: soname,
    needed files, run paths and version names are among them, without a mark which is which.
    `size` is that of the file, `mapped` how much of it the loader maps: a file shorter than that kills its process.
    """

    identity: ElfIdentity
    interpreter: str
    symbols: SymbolTable
    dynamic: Dynamic | None
    partial: bool = False
    unclaimed: frozenset[bytes] = field(default_factory=frozenset)
    need: int = 0
    size: int = 0
    mapped: int = 0

    @property
    def machine(self) -> str:
        """Return the machine as `uname -m` spells it."""
        return self.identity.machine_name

    @property
    def soname(self) -> str:
        """Return DT_SONAME, or ""."""
        return self._known.soname

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the DT_NEEDED entries in their order."""
        return self._known.needed

    @property
    def rpath(self) -> tuple[str, ...]:
        """Return the elements of DT_RPATH; the loader ignores them if there is a DT_RUNPATH."""
        return self._known.rpath

    @property
    def runpath(self) -> tuple[str, ...]:
        """Return the elements of DT_RUNPATH."""
        return self._known.runpath

    @property
    def version_needs(self) -> tuple[VersionNeed, ...]:
        """Return the versions that must be there, and the files that must define them."""
        return self._known.version_needs

    @property
    def version_definitions(self) -> tuple[VersionDefinition, ...]:
        """Return the versions that this file defines."""
        return self._known.version_definitions

    @property
    def has_dynamic(self) -> bool:
        """Tell whether the file takes part in dynamic linking."""
        return self.partial or self.dynamic is not None

    @property
    def _known(self) -> Dynamic:
        if self.partial:
            raise ElfIncomplete(self.need, ".dynamic lies behind the part at hand")
        return self.dynamic or _NOTHING


_NOTHING = Dynamic()
