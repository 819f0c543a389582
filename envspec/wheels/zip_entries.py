"""Entries of a zip's central directory, read from a part of it. `zipfile` reads whole directories only."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator

_END_SIGNATURE = b"PK\x05\x06"
_END = struct.Struct("<4s4H2IH")
_ENTRY_SIGNATURE = b"PK\x01\x02"
_ENTRY = struct.Struct("<4s6H3I5H2I")
_LOCAL_SIGNATURE = b"PK\3\4"
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
LOCAL_HEADER_SIZE = _LOCAL_HEADER.size


def directory_place(tail: bytes, tail_at: int) -> tuple[int, int] | None:
    """Return offset and size of the directory in bytes, from the last bytes of a zip; None if they do not tell."""
    at = tail.rfind(_END_SIGNATURE)
    if at < 0 or len(tail) - at < _END.size:
        return None
    _, _, _, _, _, size, offset, _ = _END.unpack_from(tail, at)
    return (offset, size) if offset + size <= tail_at + at else None


def entries_at_end(tail: bytes) -> dict[str, zipfile.ZipInfo]:
    """Return the entries, by name, that stand whole in the last bytes of a zip."""
    at, first = tail.rfind(_END_SIGNATURE), tail.find(_ENTRY_SIGNATURE)
    return {info.filename: info for info in entries(tail[first:at])} if 0 <= first < at else {}


def entries(data: bytes) -> Iterator[zipfile.ZipInfo]:
    """Yield the whole entries that stand in a row at the beginning of `data`; one of ZIP64 ends the row."""
    at = 0
    while len(data) - at >= _ENTRY.size and data[at : at + 4] == _ENTRY_SIGNATURE:
        fields = _ENTRY.unpack_from(data, at)
        name, extra, comment = fields[10:13]
        end = at + _ENTRY.size + name + extra + comment
        if end > len(data) or 0xFFFFFFFF in (fields[8], fields[9], fields[16]):
            return
        info = zipfile.ZipInfo(data[at + _ENTRY.size : at + _ENTRY.size + name].decode("utf-8", "replace"))
        info.compress_type = fields[4]
        info.CRC, info.compress_size, info.file_size = fields[7:10]
        info.header_offset = fields[16]
        yield info
        at = end


def content_offset(start: bytes) -> int | None:
    """Return where a member's content begins after its local header, which `start` holds; None if that is none."""
    if len(start) < _LOCAL_HEADER.size or start[:4] != _LOCAL_SIGNATURE:
        return None
    *_, name_size, extra_size = _LOCAL_HEADER.unpack_from(start)
    return _LOCAL_HEADER.size + int(name_size) + int(extra_size)
