"""Finding one name in a symbol table the way the loader does: by .gnu.hash.

The table is in the order of the GNU extension: a header, a Bloom filter of 64-bit words, buckets, chains.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from operator import mul

from envspec.elf.errors import ElfError

_HEADER = struct.Struct("<IIII")
_WORD = struct.Struct("<I")
_FILTER = struct.Struct("<Q")
# A chain has about two links; one of many thousands is a trap.
_LONGEST_CHAIN = 4096
_POWERS: tuple[int, ...] = tuple(pow(33, exponent, 1 << 32) for exponent in range(511, -1, -1))


class HashTable:
    """Looks symbols up in .gnu.hash. Raises ElfError `elf-malformed` when it is inconsistent."""

    def __init__(self, data: bytes) -> None:
        try:
            self._buckets, self._first, self._words, self._shift = _HEADER.unpack_from(data)
        except struct.error:
            raise ElfError("elf-malformed", ".gnu.hash is shorter than its header") from None
        if not self._buckets or not self._words:
            raise ElfError("elf-malformed", ".gnu.hash without buckets or filter")
        self._data = data
        self._at_buckets = _HEADER.size + 8 * self._words
        self._at_chains = self._at_buckets + 4 * self._buckets

    @property
    def first(self) -> int:
        """Return the index of the first symbol in the table; all before it are local or undefined."""
        return int(self._first)

    def candidates(self, name: bytes) -> Iterator[int]:
        """Yield the indices of symbols whose hash is that of `name`."""
        value = gnu_hash(name)
        try:
            (bits,) = _FILTER.unpack_from(self._data, _HEADER.size + 8 * (value // 64 % self._words))
            if not (bits >> value % 64 & 1 and bits >> (value >> self._shift) % 64 & 1):
                return
            (index,) = _WORD.unpack_from(self._data, self._at_buckets + 4 * (value % self._buckets))
            if index < self._first:
                return
            for link in range(index, index + _LONGEST_CHAIN):
                (word,) = _WORD.unpack_from(self._data, self._at_chains + 4 * (link - self._first))
                if word | 1 == value | 1:
                    yield link
                if word & 1:
                    return
        except struct.error:
            raise ElfError("elf-malformed", "a chain of .gnu.hash leaves the table") from None


@lru_cache(maxsize=1 << 15)
def gnu_hash(name: bytes) -> int:
    """Return the hash that DT_GNU_HASH uses (Bernstein's, 32 bits): a polynomial in 33 over the bytes."""
    size = len(name)
    if size > len(_POWERS):
        value = 5381
        for byte in name:
            value = value * 33 + byte & 0xFFFFFFFF
        return value
    # Twice as fast as the loop.
    value = sum(map(mul, name, _POWERS[-size:] if size else ()), 5381 * 33**size)
    return int(value) & 0xFFFFFFFF
