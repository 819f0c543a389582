"""Which processes use a directory: run from it, have files of it mapped or open, name it in their environment.

Read from /proc. Two kinds of users would not be seen there and leave a sign of their own:

- a Python started through the link `out/venv` names the link, not the generation, and its executable is the host's; it
  keeps the generation's `pyvenv.cfg` mapped (`pin_generation`);
- a shell that sourced the script has it in variables, which the kernel does not show; it writes a note into the
  generation's `shells/` (the script).

What a process does not let this user see cannot be known; root sees all. `unseen` counts those.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

SHELLS = "shells"
"""In a generation: a file per shell that sourced the script, named by its number, holding its line of /proc/PID/stat."""

_MAX = 256 << 20


class User(msgspec.Struct, frozen=True):
    """Describes a process and how it uses the directory."""

    pid: int
    name: str
    how: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}, {self.how})"


def users_of(directory: Path) -> Iterator[User]:
    """Yield every process but this one that uses a directory, in the order of their numbers."""
    needle = os.fsencode(str(directory.resolve()))
    shells = set(_shells(directory / SHELLS))
    for pid in _pids():
        if pid == os.getpid():
            continue
        how = "has sourced its script" if pid in shells else _how(Path(f"/proc/{pid}"), needle)
        if how:
            yield User(pid, _name(Path(f"/proc/{pid}")), how)


def unseen() -> int:
    """Count the processes that do not let this user see what they use."""
    return sum(1 for pid in _pids() if not _readable(Path(f"/proc/{pid}")))


def _readable(process: Path) -> bool:
    try:
        os.readlink(process / "cwd")  # noqa: PTH115
    except PermissionError:
        return False
    except OSError:
        pass  # it has ended, or it is one of the kernel's own
    return True


def _pids() -> list[int]:
    return sorted(int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal())


def _shells(notes: Path) -> Iterator[int]:
    """Yield the shells that sourced the script and still live; a number alone would not do: numbers are used again."""
    try:
        entries = [entry for entry in os.scandir(notes) if entry.name.isdecimal()]
    except OSError:
        return
    for entry in entries:
        try:
            noted = _started(Path(entry.path).read_bytes()[:4096])
            if noted and noted == _started(Path(f"/proc/{entry.name}/stat").read_bytes()):
                yield int(entry.name)
        except OSError:
            continue


def _started(line: bytes) -> bytes:
    """Return when a process started, in clock ticks since boot: the 22nd field of its stat line, the second being a name."""
    fields = line.rpartition(b")")[2].split()
    return fields[19] if len(fields) > 19 else b""


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
        with os.scandir(process / "fd") as entries:
            for entry in entries:
                if _below(os.fsencode(os.readlink(entry.path)), directory):  # noqa: PTH115
                    return "has files of it open"
    except OSError:
        pass
    return ""


def _below(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory + b"/")


def _mentions(file: Path, directory: bytes, separator: bytes) -> bool:
    """Tell whether a list in /proc names something in the directory; the name must end there or go on below it."""
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
