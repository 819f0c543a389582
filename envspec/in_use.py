"""Which processes use a directory: run from it, have files of it mapped or open, or name it in their environment.

Read from /proc. What a process does not let this user see cannot be known; root sees all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

_MAX = 4 << 20


class User(msgspec.Struct, frozen=True):
    """A process and how it uses the directory."""

    pid: int
    name: str
    how: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}, {self.how})"


def users_of(directory: Path) -> Iterator[User]:
    """Every process but this one that uses a directory, in the order of their numbers."""
    needle = os.fsencode(str(directory.resolve()))
    for pid in sorted(int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()):
        if pid == os.getpid():
            continue
        how = _how(Path(f"/proc/{pid}"), needle)
        if how:
            yield User(pid, _name(Path(f"/proc/{pid}")), how)


def _how(process: Path, directory: bytes) -> str:
    for link in ("exe", "cwd"):
        try:
            if _below(os.fsencode(os.readlink(process / link)), directory):  # noqa: PTH115  (a name, not a path to follow)
                return "runs from it" if link == "exe" else "works in it"
        except OSError:
            pass
    if _mentions(process / "maps", directory, b"\n"):
        return "has files of it loaded"
    if _mentions(process / "environ", directory, b"\0"):
        return "has it in its environment"
    if _mentions(process / "cmdline", directory, b"\0"):
        return "was started with it"
    try:
        for entry in os.scandir(process / "fd"):
            if _below(os.fsencode(os.readlink(entry.path)), directory):  # noqa: PTH115
                return "has files of it open"
    except OSError:
        pass
    return ""


def _below(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory + b"/")


def _mentions(file: Path, directory: bytes, separator: bytes) -> bool:
    """Whether a list in /proc names something in the directory; the name must end there or go on below it."""
    try:
        with file.open("rb") as stream:
            data = stream.read(_MAX)
    except OSError:
        return False
    at = data.find(directory)
    while at >= 0:
        after = data[at + len(directory) : at + len(directory) + 1]
        if after in (b"", b"/", b":", separator):
            return True
        at = data.find(directory, at + 1)
    return False


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(errors="replace").strip() or "?"
    except OSError:
        return "?"
