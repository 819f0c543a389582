"""What a generation consists of, file by file, and the one digest over it.

The *environment digest* is the same wherever, whenever and by whom an environment was built, if what it would do is the
same. It covers, of every file that a locked wheel brought: the path, the content and whether it may be executed; the
CUDA toolkit tree; the environment script; the Python minor and the machine. It leaves out, and the inventory still
lists, what says where or by which tool an environment was made:

- byte code (`__pycache__`), which Python writes when it likes,
- the interpreter's links and `pyvenv.cfg`, which name the host's Python,
- what the installer writes itself: RECORD, INSTALLER, REQUESTED, launchers for entry points (their content follows from
  `entry_points.txt`, which is in), activation scripts.

Contents are those of RECORD, compared with the size on disk. Read are files that RECORD does not know, and those that were
modified after the rest of their wheel was unpacked. uv links wheels' files from its cache: whoever edits such a file in
place, in any environment, changes it in the cache, in every other environment and in all that are built later. Sizes need
not differ, and uv does not read RECORD again; but the edited file is younger than its siblings.

Not seen: an edit that restores the time, and edits in a cache on another file system, from which files are copied.
`build --expect` reads every file, and sees both.
"""

from __future__ import annotations

import configparser
import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from envspec.fs import file_crc32, file_sha256, is_bytecode, read_start, walk
from envspec.report.errors import EnvspecError
from envspec.venv.owners import ENVSPEC, UV, Distribution, OwnedFile, is_installer_file

_UNPACKING_NS = 60 * 10**9
"""How long after the first of its files a wheel may still be unpacking. A slow disk (142 s were measured) only costs
reading more."""

_PORTION = 32
_MAX_ENTRY_POINTS = 1 << 20


class FileRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Describes one file or link of a venv. `path` is relative to the venv; `target` is set for links, `sha256` for files.

    `counted`: whether the environment digest covers it.
    """

    path: str
    sha256: str
    size: int
    executable: bool
    target: str
    owner: str
    counted: bool


class StatRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Holds what the file system tells of one file or link. `mode` holds its kind and its permissions."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    mode: int
    user: int = -1
    """The number of the user who owns it; -1 where an older envspec wrote the row."""

    @property
    def permissions(self) -> int:
        """Return the bits that chmod sets."""
        return stat.S_IMODE(self.mode)

    def is_unchanged_since(self, before: StatRow) -> bool:
        """Tell whether size, time and inode are still the same. Permissions are asked for apart: they are no content."""
        return (self.size, self.mtime_ns, self.inode) == (before.size, before.mtime_ns, before.inode)


class StatCache(msgspec.Struct, frozen=True):
    """Holds what the file system told of every file of a venv and of its CUDA_HOME when they were published, by path.

    A file of which it still says the same need not be read to know that it is unchanged.
    """

    venv: tuple[StatRow, ...]
    toolkit: tuple[StatRow, ...]
    places: tuple[StatRow, ...] = ()
    """The script and the directories of the output that decide what runs, by their path from its root."""


class Inventory(msgspec.Struct, frozen=True):
    """Holds all files of a venv by path, and what the file system says of each."""

    rows: tuple[FileRow, ...]
    stats: tuple[StatRow, ...]


def read_tree(root: Path) -> dict[str, StatRow]:
    """Ask the file system about every file and link below a directory, by relative path; byte code is left out."""
    tree = {}
    for path, entry in walk(root):
        with contextlib.suppress(FileNotFoundError):  # gone since its directory was listed
            tree[path] = stat_row(path, entry.stat(follow_symlinks=False))
    return tree


def tree_stats(root: Path) -> tuple[StatRow, ...]:
    """Ask the file system the same, and return the rows ordered by path."""
    return tuple(row for _, row in sorted(read_tree(root).items()))


def stat_row(path: str, info: os.stat_result) -> StatRow:
    """Return what the file system said of a path as a row."""
    return StatRow(path, info.st_size, info.st_mtime_ns, info.st_ino, info.st_mode, info.st_uid)


def take_inventory(
    venv: Path,
    site_packages: str,
    tree: Mapping[str, StatRow],
    owned: Mapping[str, OwnedFile],
    packages: Iterable[Distribution],
) -> Inventory:
    """List every file of a venv that was made just now; `tree` is what lies in it, `owned` what its RECORDs say.

    Raises EnvspecError `install-corrupt` for a file that is not the one that its wheel brought.
    """
    launchers = _launchers(venv / site_packages, packages)
    rows = tuple(_file_row(venv, row, owned, launchers) for _, row in sorted(tree.items()))
    _require_unmodified(venv, rows, tree, owned)
    return Inventory(rows, tuple(tree[row.path] for row in rows))


def misrecorded(
    venv: Path,
    tree: Mapping[str, StatRow],
    owned: Mapping[str, OwnedFile],
    archived: Callable[[str], Mapping[str, tuple[int, int]]],
) -> dict[str, OwnedFile]:
    """Find files about which their wheel's RECORD is wrong: of another size than it says, and just what the wheel holds.

    `archived` tells what the archive itself says of a package's files: (CRC-32, size) by path in the venv. Return what is true
    of them. A file that is neither what RECORD nor what the archive says is left to `take_inventory`.
    """
    found = {}
    for path, file in owned.items():
        row = tree.get(path)
        if row is None or file.size in (-1, row.size) or not stat.S_ISREG(row.mode):
            continue
        crc, size = archived(file.package).get(path, (-1, -1))
        if size == row.size and file_crc32(venv / path) == crc:
            found[path] = OwnedFile(file.package, file_sha256(venv / path), size)
    return found


def _file_row(
    venv: Path, found: StatRow, owned: Mapping[str, OwnedFile], launchers: frozenset[str]
) -> FileRow:
    path = found.path
    owner, sha256, size = owned.get(path, (UV, "", -1))
    target = ""
    if stat.S_ISLNK(found.mode):
        target, sha256 = os.readlink(venv / path), ""  # noqa: PTH115 - os.fspath is all that is needed of it
    elif not stat.S_ISREG(found.mode):
        raise EnvspecError("install-corrupt", f"{path} is neither a file nor a link", where=str(venv / path))
    elif not sha256:
        sha256 = file_sha256(venv / path)
    elif size not in (-1, found.size):
        raise _corrupt(venv, owner, path, f"{path} has {found.size} bytes, RECORD says {size}")
    counted = owner != UV and not target and path not in launchers and not is_installer_file(path)
    executable = bool(found.mode & 0o111) and not target
    return FileRow(path, sha256, 0 if target else found.size, executable, target, owner, counted)


def _require_unmodified(
    venv: Path, rows: Iterable[FileRow], tree: Mapping[str, StatRow], owned: Mapping[str, OwnedFile]
) -> None:
    """Read the files that are younger than their siblings, and compare them with RECORD."""
    of_wheels = [row for row in rows if row.sha256 and row.path in owned and owned[row.path].sha256]
    oldest: dict[str, int] = {}
    for row in of_wheels:
        time = tree[row.path].mtime_ns
        oldest[row.owner] = min(time, oldest.get(row.owner, time))
    for row in of_wheels:
        young = tree[row.path].mtime_ns > oldest[row.owner] + _UNPACKING_NS
        if young and file_sha256(venv / row.path) != row.sha256:
            raise _corrupt(venv, row.owner, row.path, f"{row.path} is not the file that its wheel brought")


def require_content(venv: Path, rows: Iterable[FileRow]) -> None:
    """Read every file of a wheel, and compare it with what its RECORD says.

    Sees what `take_inventory` cannot: an edit in uv's cache that restores the time, and decay of a disk. Raises EnvspecError
    `install-corrupt`.
    """
    files = [row for row in rows if row.sha256]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        # In portions: handing single files to a pool takes longer than reading most of them.
        parts = [files[at : at + _PORTION] for at in range(0, len(files), _PORTION)]
        wrong = pool.map(lambda part: [r for r in part if file_sha256(venv / r.path) != r.sha256], parts)
        for row in (row for part in wrong for row in part):
            what = f"{row.path} is not the file that its RECORD names"
            raise _corrupt(venv, row.owner, row.path, what)


_CLEAN = "take it out of uv's cache, which holds it damaged, and build again: uv cache clean "


def _corrupt(venv: Path, owner: str, path: str, what: str) -> EnvspecError:
    return EnvspecError(
        "install-corrupt",
        what,
        where=str(venv / path),
        why="uv links files from its cache; somebody edited this one in place, in some environment, or it was cut short",
        fix=_CLEAN + owner,
    )


def require_whole(
    venv: Path, tree: Mapping[str, StatRow], owned: Mapping[str, OwnedFile], scaffold: frozenset[str]
) -> None:
    """Make sure that every file is named by a RECORD, or was there before the packages (`scaffold`), and that none is missing.

    uv reports success when the end of a RECORD could not be written (found by letting single writes fail); files that it
    does not name would be nobody's, and missing in the toolkit. Raises EnvspecError `install-incomplete`.
    """
    lost = min((path for path in owned.keys() - tree.keys() if not is_bytecode(path)), default=None)
    if lost is not None:
        raise EnvspecError(
            "install-incomplete",
            f"{lost} stands in the RECORD of {owned[lost].package} but is not on disk",
            where=str(venv),
            fix=_CLEAN + owned[lost].package,
        )
    unowned = min(tree.keys() - owned.keys() - scaffold - {".lock"}, default=None)
    if unowned is not None:
        raise EnvspecError(
            "install-incomplete",
            f"{unowned} is in the environment, but no RECORD names it",
            where=str(venv),
            why="uv could not write a RECORD to its end",
            fix="check the disk (df, dmesg) and build again",
        )


def with_own_files(inventory: Inventory, venv: Path, paths: Iterable[str]) -> Inventory:
    """Add files that envspec wrote into the venv, given relative to it, since the inventory was taken."""
    stats = [stat_row(path, (venv / path).lstat()) for path in paths]
    rows = [
        FileRow(s.path, file_sha256(venv / s.path), s.size, bool(s.mode & 0o111), "", ENVSPEC, True)
        for s in stats
    ]
    return Inventory(
        tuple(sorted((*inventory.rows, *rows), key=lambda row: row.path)),
        tuple(sorted((*inventory.stats, *stats), key=lambda row: row.path)),
    )


def _launchers(site: Path, packages: Iterable[Distribution]) -> frozenset[str]:
    """Find `bin/NAME` for each entry point: written by the installer from `entry_points.txt`."""
    found = set()
    for package in packages:
        try:
            data = read_start(site / package.dist_info / "entry_points.txt", _MAX_ENTRY_POINTS)
        except OSError:
            continue
        parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        try:
            parser.read_string(data.decode("utf-8", "replace"))
        except configparser.Error:
            continue
        for section in ("console_scripts", "gui_scripts"):
            if parser.has_section(section):
                found |= {f"bin/{name.strip()}" for name in parser.options(section)}
    return frozenset(found)


def environment_digest(
    rows: Sequence[FileRow], *, python_minor: str, machine: str, toolchain: str, script_sha256: str
) -> str:
    """Return `sha256:` and a digest over everything that counts; see the module's text for the rule."""
    digest = hashlib.sha256()
    head = ("envspec environment 1", python_minor, machine, toolchain, script_sha256)
    digest.update(msgspec.json.encode(head))
    counted = [(r.path, r.sha256, r.executable) for r in sorted(rows, key=lambda r: r.path) if r.counted]
    # The directory of site-packages names the Python minor; it is in the paths already, which is as it should be.
    digest.update(msgspec.json.encode(counted))
    return f"sha256:{digest.hexdigest()}"
