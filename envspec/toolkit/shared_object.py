"""Writes a minimal ELF64 shared library: a SONAME and functions that all have the same few bytes of code.

By hand and not by a compiler or linker, because the result has to be the same bytes on every machine. It has
what linkers and loaders read: section headers for the former, program headers and a dynamic section for the
latter. It has nothing else: no relocations, no data, no versions, no dependencies, and of the two hash tables
only the System V one, which every loader knows.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec


class Processor(msgspec.Struct, frozen=True, kw_only=True):
    """Says what the file has to know of a processor (little-endian, 64 bit)."""

    e_machine: int
    page: int
    """The largest page that a kernel for it may use: segments with different rights never share one."""
    code: bytes
    """The body of every function, at most `STRIDE` bytes."""
    trap: bytes
    """One byte; repeated, it is an instruction that traps. It fills the gaps between functions."""


STRIDE = 16
"""Distance between functions. Each has its own address, so that a backtrace names the right one."""

_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR = struct.Struct("<IIQQQQQQ")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_SYM = struct.Struct("<IBBHQQ")
_DYN = struct.Struct("<qQ")

_ET_DYN = 3
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_PF_X, _PF_W, _PF_R = 1, 2, 4
_SHT_PROGBITS, _SHT_STRTAB, _SHT_HASH, _SHT_DYNAMIC, _SHT_DYNSYM = 1, 3, 5, 6, 11
_SHF_WRITE, _SHF_ALLOC, _SHF_EXECINSTR = 1, 2, 4
_DT_NULL, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 0, 4, 5, 6, 10, 11, 14
_GLOBAL_FUNCTION = 1 << 4 | 2

_HASH, _DYNSYM, _DYNSTR, _TEXT, _DYNAMIC, _SHSTRTAB = range(1, 7)
"""Indices of the sections, in the order in which they lie in the file. 0 is the null section."""


def shared_object(soname: str, functions: Sequence[str], processor: Processor) -> bytes:
    """Return the library's bytes. `functions` are distinct ASCII names; their order is the symbol table's."""
    strings = _StringTable()
    soname_at = strings.add(soname)
    names_at = [strings.add(name) for name in functions]
    hash_table = _hash_table(functions)
    text = processor.code.ljust(STRIDE, processor.trap) * len(functions)

    # The file is one run of bytes; in memory each of its three segments is moved up by another page, so that
    # it is mapped with its own rights without padding in the file.
    hash_at = _EHDR.size + 5 * _PHDR.size
    dynsym_at = _aligned(hash_at + len(hash_table), 8)
    dynstr_at = dynsym_at + _SYM.size * (len(functions) + 1)
    read_end = dynstr_at + len(strings.table)
    text_at = _aligned(read_end, STRIDE)
    dynamic_at = text_at + len(text)
    text_shift, data_shift = processor.page, 2 * processor.page

    dynsym = _SYM.pack(0, 0, 0, 0, 0, 0) + b"".join(
        _SYM.pack(name_at, _GLOBAL_FUNCTION, 0, _TEXT, text_at + text_shift + i * STRIDE, len(processor.code))
        for i, name_at in enumerate(names_at)
    )
    dynamic = b"".join(
        _DYN.pack(tag, value)
        for tag, value in (
            (_DT_SONAME, soname_at),
            (_DT_HASH, hash_at),
            (_DT_STRTAB, dynstr_at),
            (_DT_SYMTAB, dynsym_at),
            (_DT_STRSZ, len(strings.table)),
            (_DT_SYMENT, _SYM.size),
            (_DT_NULL, 0),
        )
    )
    shstrtab_at = dynamic_at + len(dynamic)

    # Type, flags, distance of memory from file, file offset, size, link, info, alignment, entry size.
    read, run, write = _SHF_ALLOC, _SHF_ALLOC | _SHF_EXECINSTR, _SHF_ALLOC | _SHF_WRITE
    sections = (
        (".hash", _SHT_HASH, read, 0, hash_at, len(hash_table), _DYNSYM, 0, 8, 4),
        (".dynsym", _SHT_DYNSYM, read, 0, dynsym_at, len(dynsym), _DYNSTR, 1, 8, _SYM.size),
        (".dynstr", _SHT_STRTAB, read, 0, dynstr_at, len(strings.table), 0, 0, 1, 0),
        (".text", _SHT_PROGBITS, run, text_shift, text_at, len(text), 0, 0, STRIDE, 0),
        (".dynamic", _SHT_DYNAMIC, write, data_shift, dynamic_at, len(dynamic), _DYNSTR, 0, 8, _DYN.size),
    )
    section_names = _StringTable()
    headers = [_SHDR.pack(*[0] * 10)]
    for name, kind, flags, shift, at, size, link, info, align, entry in sections:
        name_at = section_names.add(name)
        headers.append(_SHDR.pack(name_at, kind, flags, at + shift, at, size, link, info, align, entry))
    name_at = section_names.add(".shstrtab")
    headers.append(_SHDR.pack(name_at, _SHT_STRTAB, 0, 0, shstrtab_at, len(section_names.table), 0, 0, 1, 0))
    headers_at = _aligned(shstrtab_at + len(section_names.table), 8)

    def segment(kind: int, rights: int, at: int, size: int, shift: int, align: int) -> bytes:
        return _PHDR.pack(kind, rights, at, at + shift, at + shift, size, size, align)

    page = processor.page
    segments = (
        segment(_PT_LOAD, _PF_R, 0, read_end, 0, page),
        segment(_PT_LOAD, _PF_R | _PF_X, text_at, len(text), text_shift, page),
        segment(_PT_LOAD, _PF_R | _PF_W, dynamic_at, len(dynamic), data_shift, page),
        segment(_PT_DYNAMIC, _PF_R | _PF_W, dynamic_at, len(dynamic), data_shift, 8),
        # Without it the loader makes the whole process's stack executable.
        segment(_PT_GNU_STACK, _PF_R | _PF_W, 0, 0, 0, 16),
    )
    ident = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    elf_header = _EHDR.pack(
        ident,
        _ET_DYN,
        processor.e_machine,
        1,
        0,
        _EHDR.size,
        headers_at,
        0,
        _EHDR.size,
        _PHDR.size,
        len(segments),
        _SHDR.size,
        len(headers),
        _SHSTRTAB,
    )

    out = bytearray()
    for at, part in (
        (0, elf_header + b"".join(segments)),
        (hash_at, hash_table),
        (dynsym_at, dynsym),
        (dynstr_at, strings.table),
        (text_at, text),
        (dynamic_at, dynamic),
        (shstrtab_at, section_names.table),
        (headers_at, b"".join(headers)),
    ):
        out += bytes(at - len(out)) + part
    return bytes(out)


class _StringTable:
    """Strings, each ended by a zero byte, found by their offset. The empty string is at 0."""

    def __init__(self) -> None:
        self.table = b"\0"

    def add(self, string: str) -> int:
        at = len(self.table)
        self.table += string.encode("ascii") + b"\0"
        return at


def _hash_table(names: Sequence[str]) -> bytes:
    """Return the System V hash table: heads of chains of symbol indices, then each symbol's successor."""
    bucket_count = len(names) // 2 + 1
    buckets = [0] * bucket_count
    chain = [0] * (len(names) + 1)
    for index, name in enumerate(names, start=1):
        bucket = _hash(name) % bucket_count
        chain[index], buckets[bucket] = buckets[bucket], index
    words = (bucket_count, len(chain), *buckets, *chain)
    return struct.pack(f"<{len(words)}I", *words)


def _hash(name: str) -> int:
    value = 0
    for byte in name.encode("ascii"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


def _aligned(offset: int, to: int) -> int:
    return -(-offset // to) * to
