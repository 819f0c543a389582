"""The dynamic symbol table, decoded in columns.

A table is kept as the bytes it is in the file; what is asked of it is decoded when it is asked. Names are
bytes: a set of 80,000 `bytes` costs a third of 80,000 objects with fields, and comparing sets of names is
most of what callers do.
"""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import NamedTuple

from envspec.elf.errors import ElfError
from envspec.elf.lookup import HashTable

SYMBOL_SIZE = 24
MAX_SYMBOLS = 4_000_000
# Names can overlap in .dynstr, so a small hostile file could ask for terabytes of them.
_MAX_NAME_BYTES = 256 << 20
_MAX_HALF_NAME = 32 << 10
_CHUNK = 1024
# Hashing a name takes as long as decoding about as many.
_HASH_PAYS = 16

LOCAL, GLOBAL, WEAK, GNU_UNIQUE = 0, 1, 2, 10


class Defined(NamedTuple):
    """Describes a symbol that the file offers. `version` is "" if none; `default` is the @@ of `name@@version`."""

    name: bytes
    version: str
    default: bool
    binding: int


class Undefined(NamedTuple):
    """Describes a symbol that the file wants; `version` and `file` (who should define it) are "" if unversioned."""

    name: bytes
    version: str
    file: str
    weak: bool


@dataclass(frozen=True)
class SymbolTable:
    """Holds .dynsym with its strings and versions.

    `entries` is a whole number of 24-byte entries; `strings` is .dynstr; `indices` is .gnu.version (2 bytes
    a symbol) or empty; `wanted` maps a version index to (version, file), `offered` to the version; `gnu_hash` is
    .gnu.hash of a large table, or empty.
    Every property raises ElfError if the tables contradict each other.
    """

    entries: bytes
    strings: bytes
    indices: bytes = b""
    wanted: Mapping[int, tuple[str, str]] | None = None
    offered: Mapping[int, str] | None = None
    gnu_hash: bytes = b""

    def __len__(self) -> int:
        return len(self.entries) // SYMBOL_SIZE

    @cached_property
    def exports(self) -> frozenset[bytes]:
        """Return the names of the defined symbols that are not local, whatever their version."""
        names, marks = self._columns
        return self._names([n for n, m in zip(names, marks, strict=True) if m > 0xFFFF and m & 0xF0])

    def exported(self, names: frozenset[bytes]) -> frozenset[bytes]:
        """Return those of `names` that are among `exports`. A few names are looked up by hash, without decoding the table."""
        if not self.gnu_hash or "exports" in self.__dict__ or len(names) * _HASH_PAYS > len(self):
            return names & self.exports
        places, marks = self._columns
        strings = self._checked_strings
        lookup = HashTable(self.gnu_hash)
        return frozenset(
            name
            for name in names
            for index in lookup.candidates(name)
            if index < len(marks)
            and marks[index] > 0xFFFF
            and marks[index] & 0xF0
            and strings.startswith(name + b"\0", places[index])
        )

    @cached_property
    def imports(self) -> frozenset[bytes]:
        """Return the names of the undefined symbols that must be found (bound strongly)."""
        names, marks = self._columns
        return self._names([n for n, m in zip(names, marks, strict=True) if m <= 0xFFFF and m & 0xF0 == 0x10])

    @cached_property
    def weak_imports(self) -> frozenset[bytes]:
        """Return the names of the undefined symbols that may stay unresolved."""
        names, marks = self._columns
        return self._names([n for n, m in zip(names, marks, strict=True) if m <= 0xFFFF and m & 0xF0 == 0x20])

    @cached_property
    def exports_by_version(self) -> Mapping[str, frozenset[bytes]]:
        """Return `exports`, grouped by version ("" for those without)."""
        offered = self.offered or {}
        groups: dict[str, frozenset[bytes]] = {}
        names, marks = self._columns
        chosen = [
            (index, name)
            for index, name, mark in zip(self._versions, names, marks, strict=True)
            if mark > 0xFFFF and mark & 0xF0
        ]
        for number, found in self._grouped(chosen).items():
            version = offered.get(number, "")
            groups[version] = groups.get(version, frozenset()) | found
        return groups

    @cached_property
    def imports_by_version(self) -> Mapping[tuple[str, str], frozenset[bytes]]:
        """Return `imports`, grouped by (version, file that should define it); ("", "") for those without."""
        wanted = self.wanted or {}
        groups: dict[tuple[str, str], frozenset[bytes]] = {}
        names, marks = self._columns
        end = self._undefined_end
        chosen = [
            (index, name)
            for index, name, mark in zip(self._versions[:end], names[:end], marks[:end], strict=True)
            if mark <= 0xFFFF and mark & 0xF0 == 0x10
        ]
        for number, found in self._grouped(chosen).items():
            version = wanted.get(number, ("", ""))
            groups[version] = groups.get(version, frozenset()) | found
        return groups

    @cached_property
    def defined(self) -> tuple[Defined, ...]:
        """Return the symbols behind `exports`, with version and binding, in the order of the table."""
        names, marks = self._columns
        chosen = [mark > 0xFFFF and mark & 0xF0 != 0 for mark in marks]
        offered = self.offered or {}
        indices = list(compress(self._versions, chosen))
        rows = zip(
            self._name_list(list(compress(names, chosen))),
            [offered.get(index & 0x7FFF, "") for index in indices],
            [index < 0x8000 for index in indices],
            [mark >> 4 & 0xF for mark in compress(marks, chosen)],
            strict=True,
        )
        return tuple(map(Defined._make, rows))

    @cached_property
    def undefined(self) -> tuple[Undefined, ...]:
        """Return the symbols behind `imports` and `weak_imports`, with the wanted version, in the table's order."""
        names, marks = self._columns
        chosen = [mark <= 0xFFFF and mark & 0xF0 != 0 for mark in marks]
        wanted = self.wanted or {}
        versions = [wanted.get(index & 0x7FFF, ("", "")) for index in compress(self._versions, chosen)]
        rows = zip(
            self._name_list(list(compress(names, chosen))),
            [version for version, _ in versions],
            [file for _, file in versions],
            [mark & 0xF0 == 0x20 for mark in compress(marks, chosen)],
            strict=True,
        )
        return tuple(map(Undefined._make, rows))

    def _grouped(self, chosen: list[tuple[int, int]]) -> dict[int, frozenset[bytes]]:
        """Names by version index (without the hidden bit), of pairs of .gnu.version entry and place in .dynstr."""
        offsets: defaultdict[int, list[int]] = defaultdict(list)
        for index, name in chosen:
            offsets[index & 0x7FFF].append(name)
        return {index: self._names(places) for index, places in offsets.items()}

    @cached_property
    def _columns(self) -> tuple[array[int], array[int]]:
        """Offset of the name, and st_info | st_other << 8 | st_shndx << 16, of each symbol."""
        words = little_endian("I", self.entries)
        return words[0::6], words[1::6]

    @property
    def _undefined_end(self) -> int:
        """Behind the last symbol that may be undefined: linkers put the defined ones, which are hashed, last."""
        marks = self._columns[1]
        first = HashTable(self.gnu_hash).first if self.gnu_hash else len(marks)
        return first if first < len(marks) and min(marks[first:]) > 0xFFFF else len(marks)

    @cached_property
    def _versions(self) -> array[int]:
        if not self.indices:
            return array("H", bytes(2 * len(self)))
        if len(self.indices) != 2 * len(self):
            raise ElfError("elf-malformed", ".gnu.version and .dynsym differ in length")
        return little_endian("H", self.indices)

    @cached_property
    def _checked_strings(self) -> bytes:
        """.dynstr, known to end with NUL and to hold no string of 64 KiB or more."""
        strings = self.strings
        if strings[-1:] != b"\0":
            raise ElfError("elf-malformed", ".dynstr does not end with NUL")
        # A longer string would fill an aligned half of it: a look at a few hundred places is enough.
        for start in range(0, len(strings) - _MAX_HALF_NAME, _MAX_HALF_NAME):
            if strings.find(b"\0", start, start + _MAX_HALF_NAME) < 0:
                raise ElfError("elf-too-large", "a symbol name of more than 32 KiB")
        return strings

    def _names(self, offsets: list[int]) -> frozenset[bytes]:
        return frozenset(self._name_list(offsets))

    def _name_list(self, places: list[int]) -> list[bytes]:
        """The strings at these offsets of .dynstr."""
        if not places:
            return []
        strings = self._checked_strings
        if max(places) >= len(strings):
            raise ElfError("elf-malformed", "a symbol's name is outside .dynstr")
        find = strings.find
        names: list[bytes] = []
        total = 0
        for start in range(0, len(places), _CHUNK):
            chunk = [strings[at : find(b"\0", at)] for at in places[start : start + _CHUNK]]
            total += sum(map(len, chunk))
            if total > _MAX_NAME_BYTES:
                raise ElfError("elf-too-large", "the symbol names overlap to more than 256 MiB")
            names += chunk
        return names


def little_endian(code: str, data: bytes) -> array[int]:
    """Return `data` as an array of "H" (16 bit) or "I" (32 bit) numbers."""
    numbers: array[int] = array(code)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
