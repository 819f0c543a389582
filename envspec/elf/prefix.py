"""Finding the symbols of a file of which only the first part is at hand.

The two tables that say where .dynsym is (.dynamic, section headers) stand far behind it, in the GPU kernels'
wheels up to 1 GB behind. But the linkers' layouts are few, and .gnu.hash holds a hash of each exported name:
a guess of the place is proved right by recomputing hashes through the guessed symbol and string tables. What
is not proved is not returned. Files that `patchelf` rewrote have their tables at the end; they are not found.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from envspec.elf import headers as h
from envspec.elf.errors import ElfError
from envspec.elf.hashes import count_by_gnu_hash
from envspec.elf.lookup import gnu_hash
from envspec.elf.source import PrefixSource
from envspec.elf.symbols import MAX_SYMBOLS, SYMBOL_SIZE, SymbolTable, little_endian

# How far behind the program headers .gnu.hash may begin. GNU ld puts it behind the notes; lld and mold put
# .dynsym and the version tables before it.
_SEARCH = 512 << 10
_PROVED_NAMES = 32


class Found(NamedTuple):
    """Holds the symbol table (without versions) and the strings that are no symbol's name."""

    table: SymbolTable
    unclaimed: frozenset[bytes]


def find_symbols(data: bytes) -> Found | None:
    """Return the dynamic symbols in the first bytes of a file; None if they are not there or cannot be proved.

    Takes the bytes of the file from its start; never raises ElfError.
    """
    # The tables of a prefix are judged as if the file ended with it.
    source = PrefixSource(data, len(data))
    try:
        header = h.read_header(source)
        start = header.segment_table + header.segment_count * header.segment_size
        for place in _hash_places(data, (start + 7) & ~7):
            found = _try_hash(source, data, start, place)
            if found is not None:
                return found
    except ElfError:
        pass
    return None


def _hash_places(data: bytes, start: int) -> Iterator[int]:
    """Offsets at which a .gnu.hash can begin, by the looks of its header."""
    end = min(start + _SEARCH, len(data) - 24)
    for at in range(start, max(end, start), 8):
        buckets, first, bloom, shift = struct.unpack_from("<IIII", data, at)
        counts = 0 < buckets <= MAX_SYMBOLS and 0 < first <= MAX_SYMBOLS
        if counts and 0 < shift < 64 and bloom and not bloom & bloom - 1:
            yield at


def _try_hash(source: PrefixSource, data: bytes, start: int, place: int) -> Found | None:
    """Take `place` for a .gnu.hash: are there tables that agree with it?"""
    try:
        count, end = count_by_gnu_hash(source, place)
    except ElfError:
        return None
    if not count:
        return None
    buckets, first, bloom, _ = struct.unpack_from("<IIII", data, place)
    chains = place + 16 + 8 * bloom + 4 * buckets
    wanted = little_endian("I", data[chains : chains + 4 * min(count - first, _PROVED_NAMES)])
    for symtab, strtab in _layouts(data, start, place, end, count):
        entries = data[symtab : symtab + SYMBOL_SIZE * count]
        if len(entries) == SYMBOL_SIZE * count and _agree(data, entries, strtab, first, list(wanted)):
            return _found(data, entries, strtab)
    return None


def _layouts(data: bytes, start: int, place: int, end: int, count: int) -> Iterator[tuple[int, int]]:
    """Where .dynsym and .dynstr can be, given where .gnu.hash begins and ends."""
    size = SYMBOL_SIZE * count
    behind = (end + 7) & ~7
    yield behind, behind + size  # GNU ld: .gnu.hash .dynsym .dynstr
    # GNU ld with both hash tables and gold: [.hash] before; lld and mold: .dynsym first, strings last.
    at = data.find(bytes(SYMBOL_SIZE), start, place)
    if at >= 0:
        for symtab in {at + 7 & ~7, at + 3 & ~7}:
            yield symtab, symtab + size
            yield symtab, end
            if len(data) >= end + 8:  # .hash between .gnu.hash and .dynstr
                sysv_buckets, sysv_chains = struct.unpack_from("<II", data, end)
                yield symtab, end + 8 + 4 * (sysv_buckets + sysv_chains)


def _agree(data: bytes, entries: bytes, strtab: int, first: int, hashes: list[int]) -> bool:
    """Whether the exported symbols' names have the hashes of .gnu.hash (but for the lowest bit)."""
    if any(entries[:SYMBOL_SIZE]) or data[strtab : strtab + 1] != b"\0":
        return False
    for number, wanted in enumerate(hashes, first):
        (name,) = struct.unpack_from("<I", entries, SYMBOL_SIZE * number)
        end = data.find(b"\0", strtab + name, strtab + name + 65536)
        if end < 0 or (gnu_hash(data[strtab + name : end]) ^ wanted) > 1:
            return False
    return bool(hashes)


def _found(data: bytes, entries: bytes, strtab: int) -> Found | None:
    """The table, if all its names are at hand.

    Where .dynstr ends is not known. An empty string ends it: strings in it are not empty, and .gnu.version,
    which follows, begins with zeros. Where something else follows, a few strange strings are unclaimed.
    """
    names = little_endian("I", entries)[0::6]
    last = data.find(b"\0", strtab + max(names))
    if last < 0:
        return None
    end = data.find(b"\0\0", last)
    strings = data[strtab : (end if end >= 0 else last) + 1]
    used = set(names)
    unclaimed: set[bytes] = set()
    at = 0
    for text in strings.split(b"\0")[:-1]:
        if text and at not in used:
            unclaimed.add(text)
        at += len(text) + 1
    return Found(SymbolTable(entries, strings), frozenset(unclaimed))
