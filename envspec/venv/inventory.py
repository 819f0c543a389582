"""What a generation consists of, file by file, and the one digest over it.

The *environment digest* is the same wherever, whenever and by whom an environment was built, if what it would do is the
same. It covers, of every file that a locked wheel brought: the path, the content and whether it may be executed; the
CUDA toolkit tree; the environment script; the Python minor and the machine. It leaves out, and the inventory still
lists, what says where or by which tool an environment was made:

- byte code (`__pycache__`), which Python writes when it likes,
- the interpreter's links and `pyvenv.cfg`, which name the host's Python,
- what the installer writes itself: RECORD, INSTALLER, REQUESTED, launchers for entry points (their content follows from
  `entry_points.txt`, which is in), activation scripts.

Contents are those of RECORD, compared with the size on disk. Read are files that RECORD does not know, and those that
were written long after the rest of their wheel: uv links files from its cache, and somebody may have edited one there.
"""

from __future__ import annotations

import configparser
import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from envspec.fs import file_sha256, walk
from envspec.report.errors import EnvspecError
from envspec.venv.record import InstalledPackage

ENVSPEC = "envspec"
"""The owner of what envspec writes into a venv."""

UV = "uv"
"""The owner of what uv itself puts into a venv."""

LATE_NS = 600 * 10**9
"""A wheel is unpacked at one go (measured: 142 s for the slowest of 190). What was written later was written by somebody
else, perhaps into uv's cache, whose files are linked into the venv: such a file is read."""

_INSTALLER_FILES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")
_MAX_ENTRY_POINTS = 1 << 20


class FileRow(msgspec.Struct, frozen=True, array_like=True):
    """One file or link of a venv. `path` is relative to the venv; `target` is set for links, `sha256` for files.

    `counted`: whether the environment digest covers it.
    """

    path: str
    sha256: str
    size: int
    executable: bool
    target: str
    owner: str
    counted: bool


class StatRow(msgspec.Struct, frozen=True, array_like=True):
    """What the file system said of a file right after it was published: cheap signs that nothing has changed."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    mode: int

    @classmethod
    def of(cls, path: str, info: os.stat_result) -> StatRow:
        """The signs of one file."""
        return cls(path, info.st_size, info.st_mtime_ns, info.st_ino, stat.S_IMODE(info.st_mode))

    def alike(self, other: StatRow) -> bool:
        """Whether another look found the same size, time and inode."""
        return (self.size, self.mtime_ns, self.inode) == (other.size, other.mtime_ns, other.inode)

    def fits(self, info: os.stat_result) -> bool:
        """Whether size, time and inode are still the same. Permissions are asked for apart: they are no content."""
        return (self.size, self.mtime_ns, self.inode) == (info.st_size, info.st_mtime_ns, info.st_ino)


class Stats(msgspec.Struct, frozen=True):
    """The signs of all files of a venv and of its CUDA_HOME, by path."""

    venv: tuple[StatRow, ...]
    toolkit: tuple[StatRow, ...]


class Inventory(msgspec.Struct, frozen=True):
    """All files of a venv, by path, with the signs of the file system."""

    rows: tuple[FileRow, ...]
    stats: tuple[StatRow, ...]


def is_bytecode(path: str) -> bool:
    """Whether a path is byte code that Python writes when it likes, which is nobody's file.

    A `.pyc` outside of `__pycache__` is none: Python never writes it, and runs it as a module of its own.
    """
    return "/__pycache__/" in path or path.startswith("__pycache__/")


def take_inventory(
    venv: Path,
    site_packages: str,
    packages: Sequence[InstalledPackage],
    winners: Mapping[str, str],
    own: Sequence[str] = (),
) -> Inventory:
    """Look at every file of a venv. `winners` maps contested paths (in site-packages) to the package whose file is there;
    `own` are the paths in the venv that envspec wrote.

    Raises EnvspecError `install-corrupt` for a file that is not what RECORD says.
    """
    owned = _owned(packages, site_packages, winners)
    launchers = _launchers(venv / site_packages, packages)
    late = {p.name: _unpacked(venv / site_packages / p.dist_info) + LATE_NS for p in packages}
    rows, stats = [], []
    for path, entry in walk(venv):
        info = entry.stat(follow_symlinks=False)
        owner, sha256, size = owned.get(path, (ENVSPEC if path in own else UV, "", -1))
        target = ""
        if stat.S_ISLNK(info.st_mode):
            target, sha256 = os.readlink(entry.path), ""  # noqa: PTH115  (a DirEntry, a million times)
        elif not stat.S_ISREG(info.st_mode):
            raise EnvspecError("install-corrupt", f"{path} is neither a file nor a link", where=entry.path)
        elif not sha256:
            sha256 = file_sha256(Path(entry.path))
        elif size not in (-1, info.st_size):
            raise _corrupt(entry.path, owner, f"{path} has {info.st_size} bytes, RECORD says {size}")
        elif info.st_mtime_ns > late[owner] and file_sha256(Path(entry.path)) != sha256:
            raise _corrupt(entry.path, owner, f"{path} has not the content that RECORD says")
        counted = owner != UV and not target and path not in launchers and not _is_installer_file(path)
        executable = bool(info.st_mode & 0o111) and not target
        rows.append(FileRow(path, sha256, 0 if target else info.st_size, executable, target, owner, counted))
        stats.append(StatRow.of(path, info))
    return Inventory(tuple(sorted(rows, key=lambda r: r.path)), tuple(sorted(stats, key=lambda r: r.path)))


_CLEAN = "take it out of uv's cache, which holds it damaged, and build again: uv cache clean "


def _corrupt(path: str, owner: str, what: str) -> EnvspecError:
    return EnvspecError("install-corrupt", what, where=path, fix=_CLEAN + owner)


def _unpacked(dist_info: Path) -> int:
    """When a wheel was unpacked, in ns: the time of the file in it that no installer touches afterwards."""
    try:
        return (dist_info / "METADATA").lstat().st_mtime_ns
    except OSError:
        return 0


def tree_stats(root: Path) -> tuple[StatRow, ...]:
    """The signs of every file and link below a directory, by path."""
    rows = (StatRow.of(path, entry.stat(follow_symlinks=False)) for path, entry in walk(root))
    return tuple(sorted(rows, key=lambda row: row.path))


def _owned(
    packages: Sequence[InstalledPackage], site_packages: str, winners: Mapping[str, str]
) -> dict[str, tuple[str, str, int]]:
    """Path in the venv -> (owner, sha256, size) from the RECORDs; contested paths belong to their winner."""
    owned: dict[str, tuple[str, str, int]] = {}
    for package in packages:
        for row in package.rows:
            if winners.get(row.path, package.name) != package.name:
                continue
            owned[in_venv(row.path, site_packages)] = (package.name, row.sha256, row.size)
    return owned


def in_venv(path: str, site_packages: str) -> str:
    """A RECORD's path, relative to the venv instead of site-packages."""
    up = "../" * (site_packages.count("/") + 1)
    return path.removeprefix(up) if path.startswith(up) else f"{site_packages}/{path}"


def require_whole(
    venv: Path, site_packages: str, packages: Sequence[InstalledPackage], scaffold: frozenset[str]
) -> None:
    """Every file is named by a RECORD or was there before the packages (`scaffold`), and every one that is named is there.

    uv reports success when the end of a RECORD could not be written (found by letting single writes fail); files that it
    does not name would be nobody's, and missing in the toolkit. Raises EnvspecError `install-incomplete`.
    """
    named = {in_venv(row.path, site_packages): package.name for package in packages for row in package.rows}
    there = {path for path, _ in walk(venv)}
    lost = min((path for path in named.keys() - there if not is_bytecode(path)), default=None)
    if lost is not None:
        raise EnvspecError(
            "install-incomplete",
            f"{lost} stands in the RECORD of {named[lost]} but is not on disk",
            where=str(venv),
            fix=_CLEAN + named[lost],
        )
    stray = min(there - named.keys() - scaffold - {".lock"}, default=None)
    if stray is not None:
        raise EnvspecError(
            "install-incomplete",
            f"{stray} is in the environment, but no RECORD names it",
            where=str(venv),
            why="uv could not write a RECORD to its end",
            fix="check the disk (df, dmesg) and build again",
        )


def _launchers(site: Path, packages: Sequence[InstalledPackage]) -> frozenset[str]:
    """`bin/NAME` for each entry point: written by the installer from `entry_points.txt`."""
    found = set()
    for package in packages:
        file = site / package.dist_info / "entry_points.txt"
        try:
            text = file.read_bytes()[:_MAX_ENTRY_POINTS].decode("utf-8", "replace")
        except OSError:
            continue
        parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        try:
            parser.read_string(text)
        except configparser.Error:
            continue
        for section in ("console_scripts", "gui_scripts"):
            if parser.has_section(section):
                found |= {f"bin/{name.strip()}" for name in parser.options(section)}
    return frozenset(found)


def _is_installer_file(path: str) -> bool:
    directory, _, name = path.rpartition("/")
    return name in _INSTALLER_FILES and directory.endswith(".dist-info")


def environment_digest(
    rows: Sequence[FileRow], *, python_minor: str, machine: str, toolchain: str, script_sha256: str
) -> str:
    """`sha256:` over everything that counts; see the module's text for the rule."""
    digest = hashlib.sha256()
    head = ("envspec environment 1", python_minor, machine, toolchain, script_sha256)
    digest.update(msgspec.json.encode(head))
    counted = [(r.path, r.sha256, r.executable) for r in sorted(rows, key=lambda r: r.path) if r.counted]
    # The directory of site-packages names the Python minor; it is in the paths already, which is as it should be.
    digest.update(msgspec.json.encode(counted))
    return f"sha256:{digest.hexdigest()}"
