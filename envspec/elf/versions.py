"""GNU symbol versions: what a file defines (.gnu.version_d) and wants from others (.gnu.version_r)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from envspec.elf.errors import ElfError
from envspec.elf.headers import c_string
from envspec.elf.source import Source

_VERNEED = struct.Struct("<HHIII")
_VERNAUX = struct.Struct("<IHHII")
_VERDEF = struct.Struct("<HHHHIII")
_VERDAUX = struct.Struct("<II")
# Index 0x7fff is the largest that a symbol can refer to.
_MAX_VERSIONS = 0x8000


class VersionNeed(NamedTuple):
    """Describes a version that must be defined by `file` (a soname); `weak` if its absence only warns.

    `number` is how .gnu.version refers to it.
    """

    file: str
    version: str
    weak: bool
    number: int


class VersionDefinition(NamedTuple):
    """Describes a version that the file defines; `base` for the entry that bears the file's own name."""

    version: str
    base: bool
    number: int


def read_needs(source: Source, offset: int, count: int, strings: bytes) -> tuple[VersionNeed, ...]:
    """Return the table of `count` needed files at `offset`; names are looked up in `strings` (.dynstr)."""
    needs: list[VersionNeed] = []
    for _ in range(_bounded(count)):
        _, aux_count, file, aux, step = _VERNEED.unpack(source.read(offset, _VERNEED.size, ".gnu.version_r"))
        at = offset + aux
        for _ in range(aux_count):
            entry = source.read(at, _VERNAUX.size, ".gnu.version_r")
            _, flags, number, name, aux_step = _VERNAUX.unpack(entry)
            weak = bool(flags & 2)
            needs.append(VersionNeed(_text(strings, file), _text(strings, name), weak, number & 0x7FFF))
            _bounded(len(needs))
            if not aux_step:
                break
            at += aux_step
        if not step:
            break
        offset += step
    return tuple(needs)


def read_definitions(
    source: Source, offset: int, count: int, strings: bytes
) -> tuple[VersionDefinition, ...]:
    """Return the table of `count` defined versions at `offset`; names are looked up in `strings` (.dynstr)."""
    definitions: list[VersionDefinition] = []
    for _ in range(_bounded(count)):
        _, flags, number, aux_count, _, aux, step = _VERDEF.unpack(
            source.read(offset, _VERDEF.size, ".gnu.version_d")
        )
        if aux_count:  # the first name is the version itself, the others its parents
            name, _ = _VERDAUX.unpack(source.read(offset + aux, _VERDAUX.size, ".gnu.version_d"))
            definitions.append(VersionDefinition(_text(strings, name), bool(flags & 1), number & 0x7FFF))
        if not step:
            break
        offset += step
    return tuple(definitions)


def _bounded(count: int) -> int:
    if count > _MAX_VERSIONS:
        raise ElfError("elf-too-large", f"{count} symbol versions")
    return count


def _text(strings: bytes, offset: int) -> str:
    return c_string(strings, offset).decode("utf-8", "surrogateescape")
