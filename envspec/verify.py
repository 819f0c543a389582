"""Has it drifted? The current generation against its manifest: changed, missing and added files, and who did it.

By default a file counts as unchanged if size, modification time and inode are those of the day of publishing; with
`thorough`, its content is read. Nothing is written, and no link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envspec.errors import EnvspecError
from envspec.findings import Finding, Report, Severity, report
from envspec.inventory import FileRow, walk
from envspec.manifest import STATS, Manifest, TreeRow, read_manifest, read_stats
from envspec.output import Generation, Output
from envspec.records import file_sha256

_SHOWN = 4
_HASH_WORKERS = os.cpu_count() or 1


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """What differs from the manifest. Paths in `changed`, `missing` and `added` are relative to the venv."""

    changed: tuple[FileRow, ...]
    missing: tuple[FileRow, ...]
    added: tuple[str, ...]
    toolkit: tuple[TreeRow, ...]
    """Rows of the toolkit tree that are missing or have another content."""
    script: bool
    """Whether the environment script is missing or another one."""

    def __bool__(self) -> bool:
        """True if anything has drifted."""
        return bool(self.changed or self.missing or self.added or self.toolkit or self.script)

    def owners(self) -> tuple[str, ...]:
        """The packages whose files are changed or missing."""
        return tuple(sorted({row.owner for row in (*self.changed, *self.missing)}))


def find_drift(
    output: Output, generation: Generation, *, thorough: bool, detail: Callable[[str], None] = lambda t: None
) -> tuple[Manifest, Drift]:
    """Compare a generation with its manifest. Raises EnvspecError `manifest-damaged`."""
    manifest = read_manifest(generation.manifest)
    stats = {row.path: row for row in read_stats(generation.path / STATS) or ()}
    expected = {row.path: row for row in manifest.files}
    added: list[str] = []
    suspects: list[FileRow] = []
    changed: list[FileRow] = []
    seen = set()
    detail("looking at every file")
    for path, entry in _walk(generation.venv):
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
        if info.st_size != row.size or bool(info.st_mode & 0o111) != row.executable:
            changed.append(row)
            continue
        kept = stats.get(path)
        if thorough or kept is None or (kept.mtime_ns, kept.inode) != (info.st_mtime_ns, info.st_ino):
            suspects.append(row)
    changed += _changed_content(generation.venv, suspects, detail)
    missing = [row for path, row in expected.items() if path not in seen]
    toolkit = _toolkit_drift(output.toolchains_dir / manifest.script.toolchain, manifest.toolkit, thorough)
    return manifest, Drift(
        changed=tuple(sorted(changed, key=lambda r: r.path)),
        missing=tuple(sorted(missing, key=lambda r: r.path)),
        added=tuple(sorted(added)),
        toolkit=tuple(toolkit),
        script=not _same(generation.script, manifest.script_sha256),
    )


def _walk(venv: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        yield from walk(venv)
    except FileNotFoundError:
        return  # then everything is missing


def _changed_content(venv: Path, rows: Iterable[FileRow], detail: Callable[[str], None]) -> list[FileRow]:
    rows = list(rows)
    if rows:
        detail(f"reading {len(rows)} files")
    with ThreadPoolExecutor(_HASH_WORKERS) as pool:
        same = pool.map(lambda row: _same(venv / row.path, row.sha256), rows)
        return [row for row, equal in zip(rows, same, strict=True) if not equal]


def _same(path: Path, sha256: str) -> bool:
    try:
        return file_sha256(path) == sha256
    except OSError:
        return False


def _toolkit_drift(tree: Path, rows: Iterable[TreeRow], thorough: bool) -> Iterator[TreeRow]:
    for row in rows:
        path = tree / row.path
        try:
            if row.target:
                good = str(path.readlink()) == row.target
            elif thorough or row.owner == "envspec":
                good = _same(path, row.sha256)
            else:
                good = stat.S_ISREG(path.lstat().st_mode)
        except OSError:
            good = False
        if not good:
            yield row


def verify(
    output: Output, generation: Generation, *, thorough: bool, detail: Callable[[str], None] = lambda t: None
) -> Report:
    """The drift of a generation as findings, one for each package and kind."""
    manifest, drift = find_drift(output, generation, thorough=thorough, detail=detail)
    return report("verify", str(output.root), findings_of(manifest, drift, generation))


def findings_of(manifest: Manifest, drift: Drift, generation: Generation) -> Iterator[Finding]:
    """Drift in words."""
    site = generation.venv / manifest.script.site_packages
    locked = {p.name: p.version for p in manifest.packages}
    now = {name: (version, info) for name, version, info in _distributions(site)}
    replaced = {n for n, v in locked.items() if n in now and now[n][0] != v} | {
        n for n in locked if n not in now
    }
    added = _by_distribution(drift.added, manifest.script.site_packages, now, site)
    for name in sorted(replaced):
        files = [r.path for r in (*drift.changed, *drift.missing) if r.owner == name]
        version, info = now.get(name, ("", ""))
        message = (
            f"{name} {locked[name]} was replaced by {version} with {installer_of(site / info)}"
            if version
            else f"{name} {locked[name]} was removed"
        )
        yield _finding("drift-replaced", name, message, (*files, *added.pop(name, ())))
    for kind, rows in (("changed", drift.changed), ("missing", drift.missing)):
        by_owner: dict[str, list[str]] = {}
        for row in rows:
            if row.owner not in replaced:
                by_owner.setdefault(row.owner, []).append(row.path)
        for owner, paths in sorted(by_owner.items()):
            word = "is" if len(paths) == 1 else "are"
            count = f"{len(paths)} file{'' if len(paths) == 1 else 's'}"
            yield _finding(f"drift-{kind}", owner, f"{count} of {owner} {word} {kind}", paths)
    for owner, paths in sorted(added.items()):
        if owner:
            message = f"{owner} {now[owner][0]} was added with {installer_of(site / now[owner][1])}; it is not in the lock"
        else:
            message = f"{len(paths)} file{'' if len(paths) == 1 else 's'} that nobody locked"
        yield _finding("drift-added", owner or "venv", message, paths, Severity.WARNING)
    if drift.toolkit:
        yield _finding(
            "drift-toolkit",
            "cuda",
            f"{len(drift.toolkit)} files of CUDA_HOME differ",
            [r.path for r in drift.toolkit],
        )
    if drift.script:
        yield _finding(
            "drift-script", generation.script.name, "the environment script was changed or removed", []
        )


def _finding(
    code: str, subject: str, message: str, paths: Iterable[str], severity: Severity = Severity.ERROR
) -> Finding:
    listed = sorted(paths)
    shown = [*listed[:_SHOWN], *([f"and {len(listed) - _SHOWN} more"] if len(listed) > _SHOWN else [])]
    fix = (
        "envspec repair"
        if severity is Severity.ERROR
        else "envspec repair --prune removes added packages; other files are yours"
    )
    return Finding(
        code=code, severity=severity, subject=subject, message=message, evidence=tuple(shown), fix=fix
    )


def _distributions(site: Path) -> Iterator[tuple[str, str, str]]:
    """(name, version, directory) of every dist-info on disk now."""
    try:
        entries = [e.name for e in os.scandir(site) if e.name.endswith(".dist-info")]
    except OSError:
        return
    for name in sorted(entries):
        stem, _, version = name.removesuffix(".dist-info").rpartition("-")
        yield canonicalize_name(stem), version, name


def installer_of(dist_info: Path) -> str:
    """`uv` or `pip`, as INSTALLER tells; it is text from a file anybody may have written."""
    try:
        text = (dist_info / "INSTALLER").read_bytes()[:64].decode("utf-8", "replace").strip()
    except OSError:
        return "an unknown installer"
    return text if text.isalnum() else "an unknown installer"


def _by_distribution(
    added: Iterable[str], site_packages: str, now: dict[str, tuple[str, str]], site: Path
) -> dict[str, list[str]]:
    """Added files by the package on disk whose RECORD owns them; empty name: nobody's."""
    from envspec.records import read_record

    wanted = set(added)
    found: dict[str, list[str]] = {}
    infos = {path.split("/")[-2] for path in wanted if path.split("/")[-1:] == ["RECORD"]}
    up = "../" * (site_packages.count("/") + 1)
    for name, (_, info) in now.items():
        if info not in infos:
            continue
        try:
            rows = read_record(site / info / "RECORD")
        except EnvspecError:
            continue
        paths = [
            r.path.removeprefix(up) if r.path.startswith(up) else f"{site_packages}/{r.path}" for r in rows
        ]
        own = [path for path in paths if path in wanted]
        wanted -= set(own)
        found[name] = own
    if wanted:
        found[""] = sorted(wanted)
    return found
