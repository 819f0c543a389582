"""What a generation consists of, file by file, and the one digest over it.

The *environment digest* is the same wherever, whenever and by whom an environment was built, if what it would do is the
same. It covers, of every file that a locked wheel brought: the path, the content and whether it may be executed; the
CUDA toolkit tree; the environment script; the Python minor and the machine. It leaves out, and the inventory still
lists, what says where or by which tool an environment was made:

- byte code (`__pycache__`, `*.pyc`), which Python writes when it likes,
- the interpreter's links and `pyvenv.cfg`, which name the host's Python,
- what the installer writes itself: RECORD, INSTALLER, REQUESTED, launchers for entry points (their content follows from
  `entry_points.txt`, which is in), activation scripts.

Contents are those of RECORD, compared with the size on disk; files that RECORD does not know are read.
"""

from __future__ import annotations

import configparser
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from envspec.errors import EnvspecError
from envspec.records import InstalledPackage, file_sha256

ENVSPEC = "envspec"
"""The owner of what envspec writes into a venv."""

UV = "uv"
"""The owner of what uv itself puts into a venv."""

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


class Inventory(msgspec.Struct, frozen=True):
    """All files of a venv, by path, with the signs of the file system."""

    rows: tuple[FileRow, ...]
    stats: tuple[StatRow, ...]


def is_bytecode(path: str) -> bool:
    """Whether a path is byte code, which is nobody's file."""
    return path.endswith((".pyc", ".pyo")) or "/__pycache__/" in path or path.startswith("__pycache__/")


def take_inventory(
    venv: Path,
    site_packages: str,
    packages: Sequence[InstalledPackage],
    winners: Mapping[str, str],
    own: Sequence[str] = (),
) -> Inventory:
    """Look at every file of a venv. `winners` maps contested paths (in site-packages) to the package whose file is there;
    `own` are the paths in the venv that envspec wrote.

    Raises EnvspecError `install-corrupt` for a file whose size is not the one in RECORD.
    """
    owned = _owned(packages, site_packages, winners)
    launchers = _launchers(venv / site_packages, packages)
    rows, stats = [], []
    for path, entry in walk(venv):
        info = entry.stat(follow_symlinks=False)
        owner, sha256, size = owned.get(path, (ENVSPEC if path in own else UV, "", -1))
        target = ""
        if stat.S_ISLNK(info.st_mode):
            target, sha256 = os.readlink(entry.path), ""  # noqa: PTH115  (a DirEntry, a million times)
        elif size >= 0 and sha256 and size != info.st_size:
            raise EnvspecError(
                "install-corrupt",
                f"{path} has {info.st_size} bytes, the RECORD of {owner} says {size}",
                where=entry.path,
                fix="build again; if it stays, clean uv's cache of that package: uv cache clean " + owner,
            )
        elif not sha256:
            sha256 = file_sha256(Path(entry.path))
        counted = owner != UV and not target and path not in launchers and not _is_installer_file(path)
        executable = bool(info.st_mode & 0o111) and not target
        rows.append(FileRow(path, sha256, 0 if target else info.st_size, executable, target, owner, counted))
        stats.append(StatRow(path, info.st_size, info.st_mtime_ns, info.st_ino))
    return Inventory(tuple(sorted(rows, key=lambda r: r.path)), tuple(sorted(stats, key=lambda r: r.path)))


def walk(root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file and link below a directory, byte code left out, links not followed."""
    queue = [(str(root), "")]
    while queue:
        directory, prefix = queue.pop()
        with os.scandir(directory) as entries:
            for entry in entries:
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        queue.append((entry.path, path + "/"))
                elif not is_bytecode(path):
                    yield path, entry


def _owned(
    packages: Sequence[InstalledPackage], site_packages: str, winners: Mapping[str, str]
) -> dict[str, tuple[str, str, int]]:
    """Path in the venv -> (owner, sha256, size) from the RECORDs; contested paths belong to their winner."""
    up = "../" * (site_packages.count("/") + 1)
    owned: dict[str, tuple[str, str, int]] = {}
    for package in packages:
        for row in package.rows:
            if winners.get(row.path, package.name) != package.name:
                continue
            path = row.path.removeprefix(up) if row.path.startswith(up) else f"{site_packages}/{row.path}"
            owned[path] = (package.name, row.sha256, row.size)
    return owned


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
