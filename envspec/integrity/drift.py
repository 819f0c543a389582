"""What differs between a generation and its manifest: changed, missing and added files, and who brought them.

By default a file counts as unchanged if size, modification time and inode are those of the day of publishing; with
`check_contents`, it is read. Permissions are compared either way. Nothing is written, and no link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from envspec.fs import file_sha256
from envspec.host.python import minor_of
from envspec.integrity.bytecode import ByteCode, compare_bytecode
from envspec.integrity.places import Places, compare_places, is_foreign, places_of
from envspec.integrity.shadowing import Locked
from envspec.output.generations import Generation, Output
from envspec.output.manifest import Manifest, TreeRow, read_manifest, read_stat_cache
from envspec.venv.inventory import FileRow, StatRow, read_tree
from envspec.venv.owners import UV, AddedPackage, Owners, added_package, dist_infos, distributions
from envspec.venv.usable import unusable_python

_HASH_WORKERS = os.cpu_count() or 1
_PORTION = 32

R = TypeVar("R", FileRow, TreeRow)


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Says what differs from the manifest. Paths of the venv are relative to it, those of the toolkit to CUDA_HOME."""

    changed: tuple[FileRow, ...] = ()
    missing: tuple[FileRow, ...] = ()
    added: tuple[str, ...] = ()
    modes: tuple[FileRow, ...] = ()
    """Files that are as they were but for their permissions."""
    foreign: tuple[FileRow, ...] = ()
    """Files that are as they were, but belong to somebody else, who may change them at any time."""
    toolkit: tuple[TreeRow, ...] = ()
    """Rows of the toolkit tree that are missing or have another content or other permissions."""
    toolkit_added: tuple[str, ...] = ()
    script: bool = False
    """Whether the environment script is missing or another one."""
    cuda: bool = False
    """Whether the generation's link to its toolkit is missing or another one."""
    places: Places = Places()
    """What is wrong with the entry points, and who may write where."""
    python: str = ""
    """Why the interpreter cannot be used; empty where it can."""
    shadowing: frozenset[str] = frozenset()
    """Those of `added` that change what is imported or executed."""
    bytecode: ByteCode = ByteCode()
    """Byte code that is not that of its source; known only where contents were checked."""
    packages: tuple[AddedPackage, ...] = ()
    """Packages whose dist-info was not published."""
    removed: frozenset[str] = frozenset()
    """Locked packages whose dist-info is gone."""

    def __bool__(self) -> bool:
        """Tell whether anything has drifted."""
        files = self.rows or self.added or self.toolkit or self.toolkit_added
        files = files or self.bytecode.wrong or self.bytecode.strange
        return bool(files or self.script or self.cuda or self.places or self.python)

    @property
    def rows(self) -> tuple[FileRow, ...]:
        """Return every row of the venv that is not as it was."""
        return (*self.changed, *self.missing, *self.modes, *self.foreign)


def find_drift(
    output: Output,
    generation: Generation,
    *,
    check_contents: bool = False,
    detail: Callable[[str], None] = lambda t: None,
) -> tuple[Manifest, Drift]:
    """Compare a generation with its manifest. Raises EnvspecError `manifest-damaged`."""
    manifest = read_manifest(generation.manifest)
    cache = read_stat_cache(generation.stat_cache)
    places = places_of(output, generation, manifest.script.site_packages, manifest.script.toolchain)
    owner = output.root.stat().st_uid
    detail("looking at every file")
    venv = _compare(generation.venv, manifest.files, cache.venv, owner, check_contents, detail)
    toolchain = output.toolchains_dir / manifest.script.toolchain
    toolkit = _compare(toolchain, manifest.toolkit, cache.toolkit, owner, check_contents, detail)
    site_packages = manifest.script.site_packages
    site = generation.venv / site_packages
    published = dist_infos(((row.path, row.owner) for row in manifest.files), site_packages)
    found = {d.dist_info: d for d in distributions(site)}
    usable = not any(row.owner == UV for row in (*venv.changed, *venv.missing))
    python = unusable_python(generation.venv) if usable else ""
    bytecode = None
    if check_contents and usable and not python:
        detail("comparing byte code with its source")
        bytecode = compare_bytecode(generation.venv)
    programs = (row.path.removeprefix("bin/") for row in manifest.toolkit if row.path.startswith("bin/"))
    published_files = (
        Locked(
            {row.path for row in manifest.files}, site_packages, programs, minor_of(manifest.inputs.python)
        )
        if venv.added
        else None
    )
    return manifest, Drift(
        changed=tuple(venv.changed),
        missing=tuple(venv.missing),
        added=tuple(venv.added),
        modes=tuple(venv.modes),
        foreign=tuple(venv.foreign),
        toolkit=tuple(
            sorted(
                (*toolkit.changed, *toolkit.missing, *toolkit.modes, *toolkit.foreign), key=lambda r: r.path
            )
        ),
        toolkit_added=tuple(toolkit.added),
        script=not _same(generation.script, manifest.script_sha256),
        cuda=not _leads_to(generation.path / "cuda", f"../../toolchains/{manifest.script.toolchain}"),
        places=compare_places(output, places, cache.places),
        python=python,  # what is wrong with the venv's own files is told as theirs
        bytecode=bytecode or ByteCode(),
        shadowing=frozenset(
            path for path in venv.added if published_files is not None and published_files.shadowed_by(path)
        ),
        packages=tuple(added_package(site, site_packages, d) for i, d in found.items() if i not in published),
        removed=frozenset(package for info, package in published.items() if info not in found),
    )


def owners_now(manifest: Manifest, drift: Drift) -> Owners:
    """Return whose the files of a generation are as it is now, with what came after publishing."""
    return Owners(
        manifest.script.site_packages,
        ((row.path, row.owner) for row in manifest.files),
        ((package.name, package.version) for package in manifest.packages),
        drift.packages,
        {*drift.added, *(row.path for row in drift.changed)},
    )


def files_now(manifest: Manifest, drift: Drift) -> tuple[str, ...]:
    """List the files and links of a generation's venv as it is now, byte code aside."""
    gone = {row.path for row in drift.missing}
    return (*(row.path for row in manifest.files if row.path not in gone), *drift.added)


class _Compared(msgspec.Struct, Generic[R]):
    changed: list[R]
    missing: list[R]
    modes: list[R]
    foreign: list[R]
    added: list[str]


def _compare(
    root: Path,
    rows: Iterable[R],
    cache: Iterable[StatRow],
    owner: int,
    check_contents: bool,
    detail: Callable[[str], None],
) -> _Compared[R]:
    """Compare a tree with its rows, and with the stat cache from the day of publishing. `owner` is whose the output is."""
    expected = {row.path: row for row in rows}
    before = {row.path: row for row in cache}
    tree = read_tree(root)
    changed: list[R] = []
    suspects: list[R] = []
    modes: list[R] = []
    foreign: list[R] = []
    for path, now in tree.items():
        row, then = expected.get(path), before.get(path)
        if row is None:
            continue
        if row.target or not stat.S_ISREG(now.mode):
            if not (row.target and stat.S_ISLNK(now.mode) and _leads_to(root / path, row.target)):
                changed.append(row)
            continue
        if then is not None and then.size != now.size:
            changed.append(row)
            continue
        if not _permissions_fit(row, now, then):
            modes.append(row)
        elif is_foreign(now, then, owner):
            foreign.append(row)
        if check_contents or then is None or not now.is_unchanged_since(then):
            suspects.append(row)
    changed += _changed_content(root, suspects, detail)
    different = {row.path for row in changed}
    return _Compared(
        changed=_by_path(changed),
        missing=_by_path(row for path, row in expected.items() if path not in tree),
        modes=_by_path(row for row in modes if row.path not in different),
        foreign=_by_path(row for row in foreign if row.path not in different),
        added=sorted(tree.keys() - expected.keys()),
    )


def _by_path(rows: Iterable[R]) -> list[R]:
    return sorted(rows, key=lambda row: row.path)


def _permissions_fit(row: FileRow | TreeRow, now: StatRow, then: StatRow | None) -> bool:
    if then is not None:
        return now.permissions == then.permissions
    return isinstance(row, TreeRow) or row.executable == bool(now.mode & 0o111)


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
        return os.readlink(link) == target  # noqa: PTH115 - a Path would tidy the target up
    except OSError:
        return False
