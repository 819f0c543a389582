"""The file header, program headers, section headers and the .dynamic table of an ELF64 little-endian file.

Names and numbers are those of the System V gABI and of the GNU extensions (elf.h).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from envspec.elf.errors import ElfError, ElfIdentity, ElfUnsupported
from envspec.elf.source import Source

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
SHT_DYNSYM = 11
DT_NULL, DT_NEEDED = 0, 1
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ = 4, 5, 6, 7, 8
DT_STRSZ, DT_SONAME, DT_RPATH, DT_PLTRELSZ, DT_JMPREL, DT_RUNPATH = 10, 14, 15, 2, 23, 29
DT_GNU_HASH, DT_VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF

_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR = struct.Struct("<IIQQQQQQ")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_DYN = struct.Struct("<QQ")
_MAX_DYNAMIC = 1 << 20


class Segment(NamedTuple):
    """Describes one program header; `offset` and `file_size` in bytes of the file, `address` in the loaded image."""

    type: int
    offset: int
    address: int
    file_size: int


class Section(NamedTuple):
    """Describes one section header; `offset` and `size` in bytes of the file (NOBITS, type 8, has none there)."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    entry_size: int


class FileHeader(NamedTuple):
    """Holds what the file header tells about the tables; offsets in bytes, counts in entries."""

    identity: ElfIdentity
    segment_table: int
    segment_size: int
    segment_count: int
    section_table: int
    section_size: int
    section_count: int
    section_names: int


def identify(source: Source) -> ElfIdentity:
    """Return class, byte order, machine and type of any ELF file. Raises ElfError `elf-not-elf`."""
    if source.size < 20:
        raise ElfError("elf-not-elf", f"a file of {source.size} bytes")
    start = source.read(0, 20, "the file header")
    if start[:4] != b"\x7fELF":
        raise ElfError("elf-not-elf", "the file does not start with the ELF magic")
    if start[4] not in (1, 2) or start[5] not in (1, 2):
        raise ElfError("elf-malformed", f"class {start[4]} and byte order {start[5]} do not exist")
    order = "little" if start[5] == 1 else "big"
    kind, machine = struct.unpack_from("<HH" if start[5] == 1 else ">HH", start, 16)
    return ElfIdentity(32 if start[4] == 1 else 64, order, machine, kind)


def read_header(source: Source) -> FileHeader:
    """Return the file header. Raises ElfUnsupported for other classes and byte orders."""
    identity = identify(source)
    if identity.bits != 64 or identity.byte_order != "little":
        raise ElfUnsupported(identity)
    (_, _, _, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, shstrndx) = _EHDR.unpack(
        source.read(0, _EHDR.size, "the file header")
    )
    if phnum == 0xFFFF:
        raise ElfError("elf-too-large", "more than 65534 program headers")
    return FileHeader(identity, phoff, phentsize, phnum, shoff, shentsize, shnum, shstrndx)


def read_segments(source: Source, header: FileHeader) -> tuple[Segment, ...]:
    """Return the program headers; empty if there are none."""
    if not header.segment_count:
        return ()
    if header.segment_size != _PHDR.size:
        raise ElfError("elf-malformed", f"program headers of {header.segment_size} bytes")
    table = source.read(header.segment_table, header.segment_count * _PHDR.size, "the program headers")
    return tuple(
        Segment(kind, offset, address, file_size)
        for kind, _, offset, address, _, file_size, _, _ in _PHDR.iter_unpack(table)
    )


def read_sections(source: Source, header: FileHeader) -> tuple[Section, ...]:
    """Return the section headers with their names; empty if they were stripped."""
    rows = _section_rows(source, header)
    if not rows:
        return ()
    index = header.section_names
    if index == 0xFFFF:  # SHN_XINDEX: the real index is in the first section header
        index = rows[0][6]
    names = b""
    if index < len(rows) and rows[index][1] == 3:
        names = source.read(rows[index][4], rows[index][5], "the section names")
    return tuple(
        Section(
            c_string(names, name).decode("utf-8", "replace"), kind, flags, address, offset, size, link, entry
        )
        for name, kind, flags, address, offset, size, link, _, _, entry in rows
    )


def find_dynsym_size(source: Source, header: FileHeader, offset: int) -> int | None:
    """Return the size in bytes of the .dynsym section at `offset`; None if the section headers do not tell."""
    for row in _section_rows(source, header):
        if row[1] == SHT_DYNSYM and row[4] == offset and row[9] == 24:
            return row[5]
    return None


def _section_rows(source: Source, header: FileHeader) -> list[tuple[int, ...]]:
    if not header.section_table or header.section_size != _SHDR.size:
        return []
    count = header.section_count
    if count == 0:  # 65280 sections and more: the count is in the first header's size field
        first = _SHDR.unpack(source.read(header.section_table, _SHDR.size, "the first section header"))
        count = first[5]
    table = source.read(header.section_table, count * _SHDR.size, "the section headers")
    return list(_SHDR.iter_unpack(table))


def read_dynamic(source: Source, segments: tuple[Segment, ...]) -> dict[int, list[int]] | None:
    """Return the .dynamic table as tag -> values, as the loader finds it; None if the file has none."""
    for segment in segments:
        if segment.type == PT_DYNAMIC:
            break
    else:
        return None
    if segment.file_size > _MAX_DYNAMIC:
        raise ElfError("elf-too-large", f".dynamic claims {segment.file_size} bytes")
    size = segment.file_size - segment.file_size % _DYN.size
    entries: dict[int, list[int]] = {}
    for tag, value in _DYN.iter_unpack(source.read(segment.offset, size, ".dynamic")):
        if tag == DT_NULL:
            break
        entries.setdefault(tag, []).append(value)
    return entries


def file_offset(segments: tuple[Segment, ...], address: int, what: str) -> int:
    """Return where the loaded `address` stands in the file. Raises ElfError if no segment holds it."""
    for segment in segments:
        if segment.type == PT_LOAD and segment.address <= address < segment.address + segment.file_size:
            return address - segment.address + segment.offset
    raise ElfError("elf-malformed", f"{what} at address {address:#x} is in no loaded segment")


def c_string(table: bytes, offset: int) -> bytes:
    """Return the NUL-ended string at `offset`; empty if the offset is outside or no NUL follows."""
    end = table.find(b"\0", offset)
    return table[offset:end] if end > offset else b""
