"""How many dynamic symbols a file has, for files whose section headers were stripped.

The loader never needs the number, so no field holds it; the hash tables imply it.
"""

from __future__ import annotations

import struct

from envspec.elf.errors import ElfError
from envspec.elf.source import Source
from envspec.elf.symbols import MAX_SYMBOLS, little_endian

_GNU_HASH = struct.Struct("<IIII")
_CHAIN_BLOCK = 4096


def count_by_sysv_hash(source: Source, offset: int) -> int:
    """Return the number of symbols by DT_HASH: its chain array has one entry for each symbol."""
    _, chains = struct.unpack("<II", source.read(offset, 8, ".hash"))
    return int(chains)


def count_by_gnu_hash(source: Source, offset: int) -> tuple[int, int]:
    """Return the number of symbols by DT_GNU_HASH, and the file offset at which the table ends.

    The table covers only defined symbols, which stand last. Of a file that exports nothing it knows no
    count; then 0 is returned.
    """
    buckets, first, bloom, _ = _GNU_HASH.unpack(source.read(offset, _GNU_HASH.size, ".gnu.hash"))
    if buckets > MAX_SYMBOLS or bloom > MAX_SYMBOLS:
        raise ElfError("elf-too-large", f".gnu.hash claims {buckets} buckets and {bloom} filter words")
    table = offset + _GNU_HASH.size + 8 * bloom
    chains = table + 4 * buckets
    last = max(little_endian("I", source.read(table, 4 * buckets, ".gnu.hash")), default=0)
    if last == 0:
        return 0, chains
    if last < first or last > MAX_SYMBOLS:
        raise ElfError("elf-malformed", f".gnu.hash points at symbol {last}")
    # The chain of the last bucket runs to the last symbol; the lowest bit marks a chain's end.
    index = last
    while index <= MAX_SYMBOLS:
        at = chains + 4 * (index - first)
        block = min(_CHAIN_BLOCK, (source.size - at) // 4) if index > last else 1
        for word in little_endian("I", source.read(at, 4 * max(block, 1), ".gnu.hash")):
            index += 1
            if word & 1:
                return index, chains + 4 * (index - first)
    raise ElfError("elf-too-large", "a chain of .gnu.hash does not end")
