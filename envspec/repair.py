"""Putting back exactly what has drifted: packages through uv from the cache or the index, the rest by envspec itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from envspec import activate
from envspec.errors import EnvspecError, UsageError
from envspec.findings import Report
from envspec.inventory import ENVSPEC, UV
from envspec.lock import Lock, LockedFile, LockedPackage, render_lock
from envspec.manifest import Manifest
from envspec.output import Generation, Output
from envspec.pin_generation import NAME, pth_text
from envspec.uv import Uv
from envspec.verify import Drift, find_drift, verify


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """What was put back, and what a verification says afterwards."""

    packages: tuple[str, ...]
    removed: tuple[str, ...]
    toolkit: int
    script: bool
    report: Report


def repair(
    output: Output,
    generation: Generation,
    uv: Uv,
    index_lines: list[str],
    *,
    prune: bool,
    detail: Callable[[str], None] = lambda t: None,
) -> Repaired:
    """Repair a generation in place. `index_lines` are uv's index tables of the profile that it was built from.

    Only what differs is touched. Packages that are not in the lock are removed only if `prune`; files that no package
    owns never are.
    """
    manifest, drift = find_drift(output, generation, thorough=False, detail=detail)
    packages, removed = _packages(manifest, drift, generation, output, uv, index_lines, prune)
    if ENVSPEC in drift.owners():
        (generation.venv / manifest.script.site_packages / NAME).write_text(pth_text(), encoding="utf-8")
    lost = _scaffold(drift)
    if lost:
        raise EnvspecError(
            "repair-impossible",
            f"files that uv made with the venv are gone or changed: {', '.join(lost[:4])}",
            where=str(generation.venv),
            fix="build again: the next build makes a new generation, and this one stays until envspec gc",
        )
    _toolkit(manifest, drift, generation, output)
    if drift.script:
        generation.script.write_text(activate.render(manifest.script), encoding="utf-8")
    _refresh_stats(generation, manifest)
    return Repaired(
        packages=packages,
        removed=removed,
        toolkit=len(drift.toolkit),
        script=drift.script,
        report=verify(output, generation, thorough=False),
    )


def _scaffold(drift: Drift) -> list[str]:
    """What of the venv itself is damaged; byte code and activation scripts aside, these are the interpreter's links."""
    return [
        r.path
        for r in (*drift.changed, *drift.missing)
        if r.owner == UV and r.path.startswith(("bin/python", "lib64", "pyvenv"))
    ]


def _packages(
    manifest: Manifest,
    drift: Drift,
    generation: Generation,
    output: Output,
    uv: Uv,
    index_lines: list[str],
    prune: bool,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    locked = {p.name: p for p in manifest.packages}
    site = generation.venv / manifest.script.site_packages
    now = _now(site)
    wanted = {name for name in drift.owners() if name in locked}
    wanted |= {n for n, p in locked.items() if now.get(n) != p.version}
    extra = tuple(sorted(n for n in now if n not in locked)) if prune else ()
    work = output.work / "repair"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    project = ["[project]", 'name = "repair"', 'version = "0"', "[tool.uv]", "package = false", *index_lines]
    (work / "pyproject.toml").write_text("\n".join(project) + "\n", encoding="utf-8")
    python = generation.venv / "bin" / "python"
    try:
        if extra:
            uv.uninstall(extra, python, work)
        if wanted:
            # A package that is put back may take files with it that another one won: contested ones follow, in order.
            order = _winners_last(manifest, wanted)
            for number, batch in enumerate(order):
                requirements = work / f"requirements-{number}.txt"
                requirements.write_text(_requirements(manifest, batch), encoding="utf-8")
                uv.install(requirements, python, work, reinstall=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return tuple(sorted(wanted)), extra


def _winners_last(manifest: Manifest, wanted: set[str]) -> list[list[str]]:
    winners = list(dict.fromkeys(name for _, name in manifest.winners))
    first = sorted(wanted - set(winners))
    batches = [first] if first else []
    # The losers' names are not in the manifest, so every winner is put back whenever anything is.
    return batches + [[name] for name in winners]


def _requirements(manifest: Manifest, names: list[str]) -> str:
    packages = [
        LockedPackage(
            name=p.name, version=p.version, marker="", files=(LockedFile(p.file, p.sha256, p.size),)
        )
        for p in manifest.packages
        if p.name in names
    ]
    lock = Lock(
        profile_name=manifest.profile,
        profile_digest=manifest.inputs.profile_digest,
        python=manifest.inputs.python,
        machines=(manifest.inputs.machine,),
        exclude_newer="",
        overrides=(),
        packages=tuple(packages),
    )
    return render_lock(lock)


def _now(site: Path) -> dict[str, str]:
    from envspec.verify import _distributions

    return {name: version for name, version, _ in _distributions(site)}


def _toolkit(manifest: Manifest, drift: Drift, generation: Generation, output: Output) -> None:
    """Put files of CUDA_HOME back from the venv, which has just been repaired."""
    if not drift.toolkit:
        return
    from envspec.records import installed_packages
    from envspec.toolkit.layout import STUB, driver_headers, place, plan_tree
    from envspec.toolkit.stub import Machine, driver_symbols, stub_library

    site = generation.venv / manifest.script.site_packages
    tree = plan_tree(installed_packages(site))
    if tree.digest != manifest.toolchain:
        raise EnvspecError(
            "repair-impossible", "the toolkit's packages are not those of the manifest", fix="build again"
        )
    at = output.toolchains_dir / manifest.script.toolchain
    sources = {f.to: f.source for f in tree.files}
    for row in drift.toolkit:
        target = at / row.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or target.is_file():
            target.unlink()
        elif target.exists():
            raise UsageError(
                "repair-impossible", f"{target} is a directory that envspec did not make", fix="move it away"
            )
        if row.target:
            target.symlink_to(row.target)
        elif row.path == STUB:
            machine: Machine = "aarch64" if manifest.inputs.machine == "aarch64" else "x86_64"
            target.write_bytes(stub_library(driver_symbols(*driver_headers(tree, site)), machine))
            target.chmod(0o755)
        else:
            place(site / sources[row.path], target)


def _refresh_stats(generation: Generation, manifest: Manifest) -> None:
    """New signs for files that were put back: they are what the manifest says, at another time and inode."""
    from envspec.inventory import StatRow, walk
    from envspec.manifest import STATS
    from envspec.records import file_sha256

    expected = {row.path: row for row in manifest.files}
    from envspec.manifest import read_stats

    old = {row.path: row for row in read_stats(generation.path / STATS) or ()}
    rows = []
    for path, entry in walk(generation.venv):
        row = expected.get(path)
        if row is None:
            continue
        info = entry.stat(follow_symlinks=False)
        kept = old.get(path)
        same = kept is not None and (kept.mtime_ns, kept.inode) == (info.st_mtime_ns, info.st_ino)
        if same or row.target or file_sha256(Path(entry.path)) == row.sha256:
            rows.append(StatRow(path, info.st_size, info.st_mtime_ns, info.st_ino))
    temporary = generation.path / f".{STATS}.new"
    temporary.write_bytes(msgspec.msgpack.encode(tuple(sorted(rows, key=lambda r: r.path))))
    os.replace(temporary, generation.path / STATS)  # noqa: PTH105
