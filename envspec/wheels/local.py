"""A wheel on disk, read the same way as one on a server."""

from __future__ import annotations

import zipfile
from functools import cached_property
from pathlib import Path

from envspec.elf import Elf, read_prefix
from envspec.wheels.file import Member

_MAX_ELF_BYTES = 64 << 20


class LocalWheel:
    """Reads the wheel at `path`. Raises OSError or zipfile.BadZipFile."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Return the files of the wheel in the order of its directory."""
        return tuple(Member(i.filename, i.file_size, i.CRC) for i in self._zip.infolist() if not i.is_dir())

    def elf(self, name: str, at_most: int) -> Elf:
        """Return the library `name`. All of it is at hand, so that `at_most` bounds nothing here. Raises ElfError."""
        with self._zip.open(name) as member:
            return read_prefix(member.read(_MAX_ELF_BYTES), self._zip.getinfo(name).file_size)

    def ends_of_directory(self) -> None:
        """Return None: on disk the whole directory is read at no cost."""
