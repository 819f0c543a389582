"""One wheel as an index lists it, and its contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec


class ResolvedFile(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a file of the index. `url` is http(s), or a local path for directory indexes.

    It is empty where it is not known: then there is only what is kept by the hash.
    """

    filename: str
    url: str
    sha256: str
    size: int
    uploaded: str


def local_path(url: str) -> Path | None:
    """Return the path of a file URL or of a plain path; None for anything remote."""
    if url.startswith("file://"):
        return Path(unquote(urlsplit(url).path))
    return None if "://" in url else Path(url)


class Member(NamedTuple):
    """Describes one file of a wheel; `size` in bytes, `crc` the CRC-32 of its content."""

    name: str
    size: int
    crc: int


def is_library(path: str) -> bool:
    """Tell whether a wheel's member is a shared library, by its name."""
    name = path.rsplit("/", 1)[-1]
    return name.endswith(".so") or ".so." in name


class WheelMember(msgspec.Struct, frozen=True, array_like=True):
    """Describes a file of a wheel, as it will lie in site-packages."""

    path: str
    crc: int
    size: int


class Library(msgspec.Struct, frozen=True, array_like=True):
    """Describes a library of a wheel: the torch and nvJitLink names it asks for. Names are mangled; `problem` if unreadable."""

    path: str
    torch_imports: tuple[str, ...] = ()
    jitlink_imports: tuple[str, ...] = ()
    jitlink_exports: tuple[str, ...] = ()
    problem: str = ""


class WheelContents(msgspec.Struct, frozen=True):
    """Says what a ranged read of one wheel told of its contents."""

    members: tuple[WheelMember, ...]
    libraries: tuple[Library, ...] = ()
    unread: int = 0
    """Libraries that were not read, since nothing pointed at torch."""
    sole_directory: str = ""
    """The one directory that all files lie in, of a wheel whose long list of files was not read; `members` is empty."""


class SetContents(msgspec.Struct, frozen=True):
    """Holds the contents of the wheels of a set, by package name."""

    by_package: Mapping[str, WheelContents]

    def libraries(self) -> Iterator[tuple[str, Library]]:
        """Yield every library with the package it belongs to."""
        for name, wheel in sorted(self.by_package.items()):
            for library in wheel.libraries:
                yield name, library
