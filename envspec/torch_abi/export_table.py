"""The file form of the table of torch's exports; scripts/make_torch_exports.py writes it.

`releases.json` lists the builds (one wheel each): what they were read from and when. `exports.bin` says
which build exports which name. Names are kept as 64-bit BLAKE2b hashes: the one who asks has the name, and
hashes need a fifteenth of the space and load in milliseconds. Writing proves that no two of torch's names
share a hash; that a name which torch does not export meets one of 140,000 hashes by chance has a probability
of 1e-14.

exports.bin: the magic; number of names, size of the packed hashes, size of the packed mask numbers (3 x u32,
little-endian); then three zlib streams: the hashes ascending, as eight planes of bytes (lowest first); for
each hash the number of its mask, as two planes; the masks as u64, bit i for the i-th build of releases.json.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

MAGIC = b"envspec torch exports 1\n"
_COUNTS = struct.Struct("<III")


class TorchBuild(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one torch wheel that was read.

    `cuda` is the CUDA version of torch/version.py ("" for a build without CUDA); `cxx11_abi` tells the ABI of
    std::string; `libraries` gives the number of exported names of each of torch's own libraries; `as_of` is
    the day of reading.
    """

    release: str
    machine: str
    cuda: str
    cxx11_abi: bool
    wheel: str
    sha256: str
    as_of: str
    libraries: dict[str, int]


class Table(NamedTuple):
    """Holds hashes ascending; for each, the number of its mask; the masks, bit i for the i-th build."""

    hashes: array[int]
    numbers: array[int]
    masks: array[int]


def name_hash(name: bytes) -> int:
    """Return the 64-bit hash under which a name is kept."""
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "little")


def encode(exports: Sequence[Iterable[bytes]]) -> bytes:
    """Return the content of exports.bin for builds with these exported names, in the order of releases.json.

    Raises ValueError if there are more than 64 builds, or if two names share a hash.
    """
    if len(exports) > 64:
        raise ValueError("a mask holds 64 builds")
    of_name: dict[bytes, int] = {}
    for number, names in enumerate(exports):
        for name in names:
            of_name[name] = of_name.get(name, 0) | 1 << number
    rows = sorted((name_hash(name), mask) for name, mask in of_name.items())
    if len({value for value, _ in rows}) != len(rows):
        raise ValueError("two names share a hash: lengthen it")
    masks = sorted({mask for _, mask in rows})
    number_of = {mask: number for number, mask in enumerate(masks)}
    hashes = zlib.compress(_planes(array("Q", (value for value, _ in rows))), 9)
    numbers = zlib.compress(_planes(array("H", (number_of[mask] for _, mask in rows))), 9)
    tail = zlib.compress(_little(array("Q", masks)).tobytes(), 9)
    return MAGIC + _COUNTS.pack(len(rows), len(hashes), len(numbers)) + hashes + numbers + tail


def decode(data: bytes) -> Table:
    """Return the table in exports.bin. Raises ValueError if it is not one."""
    if not data.startswith(MAGIC):
        raise ValueError("not a table of torch exports of this version")
    at = len(MAGIC) + _COUNTS.size
    try:
        count, hashes_size, numbers_size = _COUNTS.unpack_from(data, len(MAGIC))
        hashes = _from_planes("Q", zlib.decompress(data[at : at + hashes_size]), count)
        at += hashes_size
        numbers = _from_planes("H", zlib.decompress(data[at : at + numbers_size]), count)
        masks: array[int] = array("Q")
        masks.frombytes(zlib.decompress(data[at + numbers_size :]))
    except (zlib.error, struct.error) as error:
        raise ValueError(f"a damaged table of torch exports: {error}") from error
    return Table(hashes, numbers, _little(masks))


def describe(builds: Sequence[TorchBuild]) -> bytes:
    """Return the content of releases.json for these builds."""
    document: Mapping[str, object] = {
        "version": 1,
        "about": "Builds of torch whose exported symbols are in exports.bin, bit by bit in this order. "
        "Made by scripts/make_torch_exports.py from the named wheels. libtorch_python is that of the named "
        "wheel's Python minor: between minors only names of CPython internals differ.",
        "builds": builds,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _planes(numbers: array[int]) -> bytes:
    """All lowest bytes, then all second bytes, and so on: sorted hashes compress only so."""
    data = _little(numbers).tobytes()
    width = numbers.itemsize
    return b"".join(data[place::width] for place in range(width))


def _from_planes(code: str, data: bytes, count: int) -> array[int]:
    numbers: array[int] = array(code)
    width = numbers.itemsize
    if len(data) != count * width:
        raise ValueError("a table of torch exports whose columns differ in length")
    mixed = bytearray(len(data))
    for place in range(width):
        mixed[place::width] = data[place * count : (place + 1) * count]
    numbers.frombytes(bytes(mixed))
    return _little(numbers)


def _little(numbers: array[int]) -> array[int]:
    """The array turned between this machine's byte order and little-endian."""
    if sys.byteorder == "big":
        numbers = array(numbers.typecode, numbers)
        numbers.byteswap()
    return numbers
