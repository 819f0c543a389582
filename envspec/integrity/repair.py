"""Putting back exactly what has drifted, file by file.

The packages that lost something are installed once more, beside the damaged venv. From there only the files that differ are
moved into place, each by one rename: what has not drifted is not touched, a running process never finds a file missing, and a
path that two packages own gets the file of the one that had it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from envspec.activation.script import render_script
from envspec.activation.startup_pth import pth_files
from envspec.fs import file_sha256, remove_tree, sync_file_system, write_synced
from envspec.integrity.bytecode import remove_bytecode
from envspec.integrity.drift import Drift, find_drift
from envspec.integrity.drift_findings import verify
from envspec.integrity.locked_files import LockedFiles
from envspec.integrity.places import mend_places
from envspec.integrity.venv_files import VenvFiles
from envspec.output.generations import Generation, Output
from envspec.output.manifest import Manifest, TreeRow, read_stat_cache
from envspec.profile.model import Index
from envspec.report.errors import EnvspecError
from envspec.report.findings import Report
from envspec.toolkit.write import remove_unknown
from envspec.uv.run import Uv
from envspec.venv.inventory import FileRow, StatCache, StatRow, tree_stats
from envspec.venv.owners import ENVSPEC, UV, AddedPackage, dist_infos, installed_packages


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """Says what was put back, and what a verification says afterwards."""

    files: int
    packages: tuple[str, ...]
    removed: tuple[str, ...]
    toolkit: int
    script: bool
    places: tuple[str, ...]
    """Entry points that lead to the generation again, and places to which fewer people may write."""
    report: Report


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Says how to repair. `indexes` are those of the profile that the generation was built from.

    Packages that are not in the lock are removed only if `prune`; files that no package owns never are.
    """

    indexes: tuple[Index, ...] = ()
    prune: bool = False
    check_contents: bool = False


def repair(
    output: Output,
    generation: Generation,
    uv: Uv,
    request: Request,
    detail: Callable[[str], None] = lambda t: None,
) -> Repaired:
    """Repair a generation in place. Raises EnvspecError `repair-impossible` and whatever uv fails with."""
    manifest, drift = find_drift(output, generation, check_contents=request.check_contents, detail=detail)
    cache = read_stat_cache(generation.stat_cache)
    unwanted = _unwanted(manifest, drift, prune=request.prune)
    remove_tree(output.work)
    try:
        locked = LockedFiles(generation.venv, manifest, uv, request.indexes, output.work, detail)
        restored = _repair_venv(generation.venv, manifest, drift, unwanted, cache, locked)
    finally:
        remove_tree(output.work)
    toolchain = output.toolchains_dir / manifest.script.toolchain
    if drift.toolkit:
        _repair_toolkit(generation.venv / manifest.script.site_packages, toolchain, manifest, drift, cache)
    if request.prune and drift.toolkit_added:
        remove_unknown(toolchain, {row.path for row in manifest.toolkit})
    if drift.cuda:
        _repair_link(generation.path / "cuda", f"../../toolchains/{manifest.script.toolchain}")
    mended = mend_places(output, drift.places)
    if drift.script:
        detail("writing the script")
        write_synced(generation.script, render_script(manifest.script).encode())
    fresh = StatCache(
        _renewed(generation.venv, cache.venv, manifest.files, restored),
        _renewed(toolchain, cache.toolkit, manifest.toolkit, frozenset()),
        cache.places,
    )
    write_synced(generation.stat_cache, msgspec.msgpack.encode(fresh))
    if drift or unwanted:
        sync_file_system(generation.path)
    names = {package.name for package in manifest.packages}
    return Repaired(
        files=len(drift.rows),
        packages=tuple(sorted({row.owner for row in drift.rows} - {UV, ENVSPEC})),
        removed=tuple(sorted({package.name for package in unwanted} - names)),
        toolkit=len(drift.toolkit) + drift.cuda,
        script=drift.script,
        places=mended,
        report=verify(output, generation),
    )


def _unwanted(manifest: Manifest, drift: Drift, *, prune: bool) -> list[AddedPackage]:
    """Return the packages to take out: other versions of locked packages, and with `prune` packages that nobody locked."""
    locked = {package.name for package in manifest.packages}
    return [package for package in drift.packages if prune or package.name in locked]


def _repair_venv(
    venv: Path,
    manifest: Manifest,
    drift: Drift,
    unwanted: Iterable[AddedPackage],
    cache: StatCache,
    locked: LockedFiles,
) -> frozenset[str]:
    """Put the files of the venv back; return the paths whose files were compared with the manifest."""
    of_packages = [row for row in (*drift.changed, *drift.missing) if row.owner != ENVSPEC]
    # Nothing is touched before everything that will be needed is there.
    sources = locked.make(of_packages)
    files = VenvFiles(venv, {row.path: row.permissions for row in cache.venv})
    published = {row.path for row in manifest.files}
    for package in unwanted:
        files.remove(package.paths - published, f"{manifest.script.site_packages}/{package.dist_info}")
    for row in of_packages:
        files.move_in(row, sources[row.owner] / row.path)
        remove_bytecode(venv / row.path)
    texts = pth_files()
    for row in (*drift.changed, *drift.missing):
        name = row.path.rpartition("/")[2]
        if row.owner == ENVSPEC and name in texts:
            files.write(row, texts[name])
    for row in drift.modes:
        files.set_permissions(row)
    for row in drift.foreign:
        files.make_own(row)
    files.remove(drift.bytecode.wrong, manifest.script.site_packages)
    return frozenset(row.path for row in of_packages)


def _repair_toolkit(site: Path, toolchain: Path, manifest: Manifest, drift: Drift, cache: StatCache) -> None:
    """Put files of CUDA_HOME back from the venv, which has just been repaired."""
    from envspec.toolkit.layout import plan_tree
    from envspec.toolkit.toolchain import driver_stub
    from envspec.toolkit.write import put_back

    published = dist_infos(((row.path, row.owner) for row in manifest.files), manifest.script.site_packages)
    tree = plan_tree(installed_packages(site, published))
    if tree.digest != manifest.toolchain:
        raise EnvspecError(
            "repair-impossible",
            "the toolkit's packages are not those of the manifest",
            where=str(site),
            fix="build again",
        )
    put_back(
        tree,
        site,
        toolchain,
        driver_stub(tree, site, manifest.inputs.machine),
        [row.path for row in drift.toolkit],
        {row.path: row.permissions for row in cache.toolkit},
    )


def _repair_link(link: Path, target: str) -> None:
    temporary = link.with_name(f".{link.name}.new")
    remove_tree(temporary)
    temporary.symlink_to(target)
    temporary.replace(link)


def _renewed(
    root: Path, before: Iterable[StatRow], rows: Iterable[FileRow | TreeRow], restored: frozenset[str]
) -> tuple[StatRow, ...]:
    """Renew the stat rows of every file that is as the manifest says, which may have another time and inode than before. The
    others keep their old rows, which will not fit."""
    old = {row.path: row for row in before}
    expected = {row.path: row for row in rows}
    found = []
    for now in tree_stats(root):
        row, then = expected.get(now.path), old.get(now.path)
        if row is None:
            continue
        good = (
            bool(row.target)
            or now.path in restored
            or (then is not None and now.is_unchanged_since(then))
            or file_sha256(root / now.path) == row.sha256
        )
        if good:
            found.append(now if then is None else msgspec.structs.replace(now, mode=then.mode))
        elif then is not None:
            found.append(then)
    return tuple(found)
