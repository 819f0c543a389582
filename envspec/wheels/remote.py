"""A wheel on a server, read without downloading it: its list of files, METADATA, and the symbols of its libraries.

Everything read is bounded, also when the archive lies. Not here: caches, and what the contents mean.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property

import requests

from envspec.elf import Elf, ElfError, ElfIncomplete, read_prefix
from envspec.wheels.file import Member
from envspec.wheels.ranged import RangedFile, new_session
from envspec.wheels.zip_entries import (
    LOCAL_HEADER_SIZE,
    content_offset,
    directory_place,
    entries,
    entries_at_end,
)

_MAX_TEXT = 32 << 20
# Kernel wheels hold their symbol tables in the first 30 to 200 KB of the compressed member.
_FIRST_READ = 48 << 10
_LARGEST_READ = 16 << 20
_MAX_ELF_READ = 4 << 20
_MAX_ELF_BYTES = 64 << 20
_LARGE_DIRECTORY = 200 << 10
_HEAD = 8 << 10


class RemoteWheel:
    """Reads a wheel (or any zip) at `url`.

    Opening it reads the end of the file, with most of a small wheel's central directory. Raises what RangedFile raises, and
    `wheel-broken` for an archive that is not a zip, contradicts itself or is beyond the bounds.
    """

    def __init__(self, url: str, session: requests.Session | None = None) -> None:
        self.file = RangedFile(url, session or new_session())

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Return the files of the wheel in the order of its directory."""
        return tuple(Member(i.filename, i.file_size, i.CRC) for i in self._infos.values())

    def ends_of_directory(self) -> tuple[str, ...] | None:
        """Return the names at both ends of a large central directory; None if it is small, and is better read whole.

        Wheels list their files in sorted order, so what both ends have in common, everything between has too. A directory
        of 40,000 files has 6 MB; its ends have 20 KB.
        """
        offset, size = directory_place(self.file.tail, self.file.tail_at) or (0, 0)
        if size < _LARGE_DIRECTORY:
            return None
        head = tuple(info.filename for info in entries(self.file.read(offset, _HEAD)))
        return (*head, *self._last_infos) if head and self._last_infos else None

    def metadata(self) -> str:
        """Return the text of the wheel's METADATA."""
        # It stands near the end of the directory, as a rule: what was read first is looked at first.
        member = metadata_member(self._last_infos) or metadata_member(self._infos)
        if member is None:
            raise self.file.broken("it holds no METADATA")
        return self.read(member).decode("utf-8", "replace")

    def read(self, name: str, limit: int = _MAX_TEXT) -> bytes:
        """Return the content of the member `name`, checked against its CRC. Raises KeyError if there is none."""
        info = self._last_infos.get(name) or self._infos[name]
        if info.file_size > limit:
            raise self.file.broken(f"{name} has {info.file_size} bytes")
        content = b"".join(self._inflate(info, info.compress_size, limit, info.compress_size))
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise self.file.broken(f"{name} does not have the size or CRC that the directory gives")
        return content

    def elf(self, name: str, at_most: int = _MAX_ELF_READ) -> Elf:
        """Return the library `name`, from as little of its beginning as holds its symbols.

        Reads `at_most` bytes of the compressed member; a smaller member is read whole if need be. Raises
        KeyError; ElfIncomplete if the symbols are not in them (`patchelf` moves them to the end of the file);
        ElfError if it is no ELF file or a broken one.
        """
        info = self._infos[name]
        taken = bytearray()
        # Without knowing where the tables are, more is asked for in growing steps.
        for piece in self._inflate(info, _FIRST_READ, _MAX_ELF_BYTES, at_most):
            taken += piece
            try:
                return read_prefix(bytes(taken), info.file_size)
            except ElfIncomplete as incomplete:
                last = incomplete
        if not taken:
            raise ElfError("elf-not-elf", "an empty file")
        raise last

    @cached_property
    def _infos(self) -> dict[str, zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(self.file.open()) as archive:
                return {info.filename: info for info in archive.infolist() if not info.is_dir()}
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError) as error:
            raise self.file.broken(str(error)) from error

    @cached_property
    def _last_infos(self) -> dict[str, zipfile.ZipInfo]:
        """The entries of the central directory that stand whole in the end of the file that was read first."""
        return entries_at_end(self.file.tail)

    def _inflate(self, info: zipfile.ZipInfo, first: int, limit: int, at_most: int) -> Iterator[bytes]:
        """Yield the decompressed member, a piece for each read of the network; reads grow from `first` bytes.

        Ends at the end of the member, or after `at_most` compressed bytes. Raises `wheel-broken` beyond
        `limit` decompressed bytes.
        """
        name = info.filename
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise self.file.broken(f"{name} is compressed or encrypted in a way that wheels are not")
        inflater = zlib.decompressobj(-zlib.MAX_WBITS) if info.compress_type else None
        # The local header repeats the name and may have another extra field than the directory.
        guess = LOCAL_HEADER_SIZE + len(name.encode()) + 64
        left = min(info.compress_size, at_most)
        room = self.file.size - info.header_offset
        start = self.file.read(info.header_offset, min(guess + min(first, left), room))
        offset = content_offset(start)
        if offset is None:
            raise self.file.broken(f"{name} has no local header")
        at = info.header_offset + offset
        compressed = start[offset:][:left]
        total, step = 0, first
        while True:
            try:
                piece = inflater.decompress(compressed, limit - total + 1) if inflater else compressed
            except zlib.error as error:
                raise self.file.broken(f"{name}: {error}") from error
            total += len(piece)
            if total > limit:
                raise self.file.broken(f"{name} is larger than {limit} bytes")
            yield piece
            at += len(compressed)
            left -= len(compressed)
            if left <= 0:
                return
            step = min(step * 4, left, _LARGEST_READ)
            compressed = self.file.read(at, step)


def metadata_member(members: Iterable[str]) -> str | None:
    """Return the member `*.dist-info/METADATA`, None if there is none."""
    for member in members:
        directory, _, file = member.partition("/")
        if file == "METADATA" and directory.endswith(".dist-info"):
            return member
    return None
