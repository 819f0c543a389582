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
from packaging.utils import canonicalize_name

from envspec.errors import EnvspecError
from envspec.findings import Finding, Report, Severity, report
from envspec.inventory import ENVSPEC, FileRow, StatRow, in_venv, walk
from envspec.manifest import STATS, Manifest, TreeRow, read_manifest, read_stats
from envspec.output import Generation, Output
from envspec.records import file_sha256

_SHOWN = 4
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


def verify(
    output: Output, generation: Generation, *, thorough: bool, detail: Callable[[str], None] = lambda t: None
) -> Report:
    """The drift of a generation as findings, one for each package and kind."""
    manifest, drift = find_drift(output, generation, thorough=thorough, detail=detail)
    return report("verify", str(output.root), findings_of(manifest, drift, generation))


class Distribution(msgspec.Struct, frozen=True):
    """One dist-info on disk."""

    name: str
    version: str
    directory: str


def findings_of(manifest: Manifest, drift: Drift, generation: Generation) -> Iterator[Finding]:
    """Drift in words."""
    site = generation.venv / manifest.script.site_packages
    locked = {p.name: p.version for p in manifest.packages}
    found = tuple(distributions(site))
    added, owners = owners_of_added(drift.added, manifest.script.site_packages, found, site)
    there = {d.name for d in found if d.version == locked.get(d.name)}
    replaced = set()
    for name in sorted(locked):
        others = [d for d in found if d.name == name and d.version != locked[name]]
        if not others and name in there:
            continue
        replaced.add(name)
        files = [r.path for r in (*drift.changed, *drift.missing) if r.owner == name]
        for other in others:
            files += added.pop(other.directory, ())
        yield _finding(
            "drift-replaced",
            name,
            _replaced(name, locked[name], others, name in there, site),
            [f"{_files(len(files))} changed, missing or added"],
        )
    for kind, rows in (("changed", drift.changed), ("missing", drift.missing), ("modes", drift.modes)):
        by_owner: dict[str, list[str]] = {}
        for row in rows:
            if row.owner not in replaced:
                by_owner.setdefault(row.owner, []).append(row.path)
        for owner, paths in sorted(by_owner.items()):
            code = "drift-missing" if kind == "missing" else "drift-changed"
            yield _finding(code, owner, _sentence(owner, len(paths), kind), paths)
    for directory, paths in sorted(added.items()):
        distribution = owners.get(directory)
        if distribution is not None:
            with_what = f"was added with {installer_of(site / directory)}; it is not in the lock"
            message = f"{distribution.name} {distribution.version} {with_what}"
            paths = [_files(len(paths))]
        else:
            message = f"{_files(len(paths))} that nobody locked"
        yield _finding(
            "drift-added", distribution.name if distribution else "venv", message, paths, Severity.WARNING
        )
    if drift.toolkit or drift.cuda:
        link = ("the link to CUDA_HOME",) if drift.cuda else ()
        count = len(drift.toolkit)
        message = f"{_files(count)} of CUDA_HOME {'differs' if count == 1 else 'differ'}"
        yield _finding(
            "drift-toolkit",
            "cuda",
            message if count else "the link to CUDA_HOME was changed or removed",
            [*(r.path for r in drift.toolkit), *(link if count else ())],
        )
    if drift.toolkit_added:
        message = f"{_files(len(drift.toolkit_added))} in CUDA_HOME that envspec did not put there"
        yield _finding("drift-added", "cuda", message, drift.toolkit_added, Severity.WARNING)
    if drift.script:
        yield _finding(
            "drift-script", generation.script.name, "the environment script was changed or removed", []
        )


def _replaced(name: str, version: str, others: list[Distribution], there: bool, site: Path) -> str:
    if not others:
        return f"{name} {version} was removed"
    what = " and ".join(f"{d.version} with {installer_of(site / d.directory)}" for d in others)
    return f"{name} {version} was {'overlaid' if there else 'replaced'} by {what}"


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _sentence(owner: str, count: int, kind: str) -> str:
    of = {"uv": "the venv itself", ENVSPEC: "envspec"}.get(owner, owner)
    if kind == "modes":
        return f"{_files(count)} of {of} {'has' if count == 1 else 'have'} other permissions"
    return f"{_files(count)} of {of} {'is' if count == 1 else 'are'} {kind}"


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


def distributions(site: Path) -> Iterator[Distribution]:
    """Every dist-info on disk now, by name."""
    try:
        entries = [e.name for e in os.scandir(site) if e.name.endswith(".dist-info") and e.is_dir()]
    except OSError:
        return
    for directory in sorted(entries):
        # pip renames what it is removing to ~NAME; if it is ended then, that is what remains.
        stem, _, version = directory.removesuffix(".dist-info").rpartition("-")
        if stem and not directory.startswith("~"):
            yield Distribution(canonicalize_name(stem), version, directory)


def installer_of(dist_info: Path) -> str:
    """`uv` or `pip`, as INSTALLER tells; it is text from a file anybody may have written."""
    try:
        handle = os.open(dist_info / "INSTALLER", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            text = file.read(64).decode("utf-8", "replace").strip()
    except OSError:
        return "an unknown installer"
    return text if text.isascii() and text.isalnum() else "an unknown installer"


def owners_of_added(
    added: Iterable[str], site_packages: str, found: Iterable[Distribution], site: Path
) -> tuple[dict[str, list[str]], dict[str, Distribution]]:
    """Added files by the dist-info on disk whose RECORD owns them (empty: nobody's), and the owners by dist-info."""
    wanted = set(added)
    infos = {path.split("/")[-2] for path in wanted if path.endswith(".dist-info/RECORD")}
    files: dict[str, list[str]] = {}
    owners: dict[str, Distribution] = {}
    for distribution in found:
        if distribution.directory not in infos:
            continue
        own = [
            path for path in recorded_paths(site / distribution.directory, site_packages) if path in wanted
        ]
        wanted -= set(own)
        files[distribution.directory] = own
        owners[distribution.directory] = distribution
    if wanted:
        files[""] = sorted(wanted)
    return files, owners


def recorded_paths(dist_info: Path, site_packages: str) -> list[str]:
    """The paths in the venv that a RECORD on disk names; those that leave the venv are left out."""
    from envspec.records import read_record

    try:
        rows = read_record(dist_info / "RECORD")
    except EnvspecError:
        return []
    paths = (in_venv(row.path, site_packages) for row in rows)
    return [path for path in paths if ".." not in path.split("/") and not path.startswith("/")]
