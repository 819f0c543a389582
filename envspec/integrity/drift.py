"""Has it drifted? The current generation against its manifest: changed, missing and added files, and who did it.

By default a file counts as unchanged if size, modification time and inode are those of the day of publishing; with
`thorough`, its content is read. Permissions are compared either way. Nothing is written, and no link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from envspec.fs import file_sha256, walk
from envspec.output.generations import Generation, Output
from envspec.output.manifest import STATS, Manifest, TreeRow, read_manifest, read_stats
from envspec.venv.inventory import FileRow, StatRow

_HASH_WORKERS = os.cpu_count() or 1
_PORTION = 32

R = TypeVar("R", FileRow, TreeRow)


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """What differs from the manifest. Paths of the venv are relative to it, those of the toolkit to CUDA_HOME."""

    changed: tuple[FileRow, ...] = ()
    missing: tuple[FileRow, ...] = ()
    added: tuple[str, ...] = ()
    modes: tuple[FileRow, ...] = ()
    """Files that are as they were but for their permissions."""
    toolkit: tuple[TreeRow, ...] = ()
    """Rows of the toolkit tree that are missing or have another content or other permissions."""
    toolkit_added: tuple[str, ...] = ()
    script: bool = False
    """Whether the environment script is missing or another one."""
    cuda: bool = False
    """Whether the generation's link to its toolkit is missing or another one."""

    def __bool__(self) -> bool:
        """True if anything has drifted."""
        return bool(self.rows or self.added or self.toolkit or self.toolkit_added or self.script or self.cuda)

    @property
    def rows(self) -> tuple[FileRow, ...]:
        """Every row of the venv that is not as it was."""
        return (*self.changed, *self.missing, *self.modes)


def find_drift(
    output: Output, generation: Generation, *, thorough: bool, detail: Callable[[str], None] = lambda t: None
) -> tuple[Manifest, Drift]:
    """Compare a generation with its manifest. Raises EnvspecError `manifest-damaged`."""
    manifest = read_manifest(generation.manifest)
    stats = read_stats(generation.path / STATS)
    detail("looking at every file")
    venv = _compare(
        generation.venv,
        {row.path: row for row in manifest.files},
        stats.venv,
        thorough,
        detail,
    )
    toolkit = _compare(
        output.toolchains_dir / manifest.script.toolchain,
        {row.path: row for row in manifest.toolkit},
        stats.toolkit,
        thorough,
        detail,
    )
    return manifest, Drift(
        changed=tuple(venv.changed),
        missing=tuple(venv.missing),
        added=tuple(venv.added),
        modes=tuple(venv.modes),
        toolkit=tuple(sorted((*toolkit.changed, *toolkit.missing, *toolkit.modes), key=lambda r: r.path)),
        toolkit_added=tuple(toolkit.added),
        script=not _same(generation.script, manifest.script_sha256),
        cuda=not _leads_to(generation.path / "cuda", f"../../toolchains/{manifest.script.toolchain}"),
    )


class _Compared(msgspec.Struct, Generic[R]):
    changed: list[R]
    missing: list[R]
    modes: list[R]
    added: list[str]


def _compare(
    root: Path,
    expected: Mapping[str, R],
    signs: Iterable[StatRow],
    thorough: bool,
    detail: Callable[[str], None],
) -> _Compared[R]:
    """A tree against its rows, and against the signs of the day of publishing."""
    kept = {row.path: row for row in signs}
    added: list[str] = []
    suspects: list[R] = []
    changed: list[R] = []
    modes: set[str] = set()
    seen = set()
    for path, entry in _walk(root):
        row = expected.get(path)
        if row is None:
            added.append(path)
            continue
        seen.add(path)
        info = entry.stat(follow_symlinks=False)
        if row.target or stat.S_ISLNK(info.st_mode):
            if not row.target or not stat.S_ISLNK(info.st_mode) or os.readlink(entry.path) != row.target:  # noqa: PTH115
                changed.append(row)
            continue
        sign = kept.get(path)
        if not stat.S_ISREG(info.st_mode) or (sign is not None and sign.size != info.st_size):
            changed.append(row)
            continue
        if not _permissions_fit(row, sign, info):
            modes.add(path)
        if thorough or sign is None or not sign.fits(info):
            suspects.append(row)
    changed += _changed_content(root, suspects, detail)
    different = {row.path for row in changed}
    return _Compared(
        changed=sorted(changed, key=lambda r: r.path),
        missing=sorted((row for path, row in expected.items() if path not in seen), key=lambda r: r.path),
        modes=[expected[path] for path in sorted(modes - different)],
        added=sorted(added),
    )


def _permissions_fit(row: FileRow | TreeRow, sign: StatRow | None, info: os.stat_result) -> bool:
    if sign is not None:
        return sign.mode == stat.S_IMODE(info.st_mode)
    return isinstance(row, TreeRow) or row.executable == bool(info.st_mode & 0o111)


def _walk(root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        yield from walk(root)
    except (FileNotFoundError, NotADirectoryError):
        return  # then everything is missing


def _changed_content(root: Path, rows: list[R], detail: Callable[[str], None]) -> list[R]:
    if rows:
        detail(f"reading {len(rows)} files")
    with ThreadPoolExecutor(_HASH_WORKERS) as pool:
        # In portions: handing single files to a pool takes longer than reading most of them.
        portions = [rows[at : at + _PORTION] for at in range(0, len(rows), _PORTION)]
        found = pool.map(lambda part: [r for r in part if not _same(root / r.path, r.sha256)], portions)
        return [row for part in found for row in part]


def _same(path: Path, sha256: str) -> bool:
    try:
        return file_sha256(path) == sha256
    except OSError:
        return False


def _leads_to(link: Path, target: str) -> bool:
    try:
        return str(link.readlink()) == target
    except OSError:
        return False
