"""Where the bytes of an ELF file come from: a path, or the first part of a file.

Files are read with `pread`, not mapped: a mapped file that somebody truncates meanwhile kills the process
with SIGBUS, which no exception handler sees, and mapping is not faster for the few blocks that are read.
"""

from __future__ import annotations

import os
import stat
from types import TracebackType
from typing import Protocol

from envspec.elf.errors import ElfError, ElfIncomplete

# No table of a real library comes near it (libtorch_cpu's largest, .dynstr, has 5.6 MB).
MAX_TABLE = 96 << 20
# One block holds the file header, the program headers and, mostly, the notes; .dynamic and the version
# tables fit in another one.
_BLOCK = 8192


class Source(Protocol):
    """Gives bytes at absolute file offsets."""

    @property
    def size(self) -> int:
        """Return the size of the whole file in bytes, also where only a part of it is available."""

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return exactly `size` bytes at `offset`; `what` names them in errors.

        Raises ElfError: they are not in the file, or are more than MAX_TABLE; ElfIncomplete: they are in
        the file but not at hand.
        """


def _check(offset: int, size: int, file_size: int, what: str) -> None:
    if size > MAX_TABLE:
        raise ElfError("elf-too-large", f"{what} claims {size} bytes")
    if offset + size > file_size:
        raise ElfError("elf-truncated", f"{what}: {size} bytes at {offset} in a file of {file_size} bytes")


class FileSource:
    """Reads a regular file. Use it as a context manager; it closes the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            # O_NONBLOCK: opening a FIFO that bears a library's name must not hang.
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            raise ElfError("elf-unreadable", f"cannot open: {error}") from error
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise ElfError("elf-unreadable", "not a regular file")
        self.size = status.st_size
        self._block_at = 0
        self._block = b""

    def __enter__(self) -> FileSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def read(self, offset: int, size: int, what: str) -> bytes:
        """See `Source.read`."""
        start = offset - self._block_at
        if start >= 0 and start + size <= len(self._block):
            return self._block[start : start + size]
        _check(offset, size, self.size, what)
        data = self._pread(max(size, _BLOCK), offset)
        if len(data) < size:  # cut by somebody since fstat, or a short read
            data += self._pread(size - len(data), offset + len(data))
            if len(data) < size:
                raise ElfError("elf-truncated", f"{what}: the file became shorter while it was read")
        if len(data) > size:
            self._block_at, self._block = offset, data
            return data[:size]
        return data

    def _pread(self, size: int, offset: int) -> bytes:
        try:
            return os.pread(self._fd, size, offset)
        except OSError as error:
            raise ElfError("elf-unreadable", f"cannot read: {error}") from error


class PrefixSource:
    """Gives the first bytes of a file whose whole size is `size`."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = data
        self.size = max(size, len(data))

    def read(self, offset: int, size: int, what: str) -> bytes:
        """See `Source.read`."""
        _check(offset, size, self.size, what)
        if offset + size > len(self._data):
            raise ElfIncomplete(offset + size, f"{what} lies behind the first {len(self._data)} bytes")
        return self._data[offset : offset + size]
