"""Putting back exactly what has drifted, file by file.

The packages that lost something are installed once more, into a venv of their own beside the damaged one, by the same uv
and the same locked hashes. From there only the files that differ are moved into place, each by one rename: what has not
drifted is not touched, a running process never finds a file missing, and a path that two packages own gets the bytes of
the one that was declared to win.

uv links files from its cache, so whoever edits a file in place edits the cache too. What comes out of the cache is therefore
compared with the manifest, and packages that are damaged there are fetched anew.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from envspec.activation.script import render_script
from envspec.activation.startup_pth import pth_files
from envspec.fs import BYTECODE, file_sha256, remove_tree, sync_file_system, write_synced
from envspec.integrity.drift import Drift, find_drift
from envspec.integrity.drift_findings import verify
from envspec.lock import Lock, LockedFile, LockedPackage, render_lock
from envspec.output.generations import Generation, Output
from envspec.output.manifest import STATS, Manifest, TreeRow, read_stat_cache
from envspec.profile.model import Index
from envspec.report.errors import EnvspecError
from envspec.report.findings import Report
from envspec.uv.project import installation_project
from envspec.uv.run import Uv
from envspec.venv.inventory import FileRow, StatCache, StatRow, tree_stats
from envspec.venv.owners import ENVSPEC, UV, AddedPackage, dist_infos, installed_packages


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """What was put back, and what a verification says afterwards."""

    files: int
    packages: tuple[str, ...]
    removed: tuple[str, ...]
    toolkit: int
    script: bool
    report: Report


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """How to repair. `indexes` are those of the profile that the generation was built from.

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
    work = output.work
    remove_tree(work)
    try:
        return _Repair(output, generation, uv, request, manifest, drift, work, detail).run()
    finally:
        remove_tree(work)


class _Repair:
    """One repair: what stays the same through its steps."""

    def __init__(
        self,
        output: Output,
        generation: Generation,
        uv: Uv,
        request: Request,
        manifest: Manifest,
        drift: Drift,
        work: Path,
        detail: Callable[[str], None],
    ) -> None:
        self.output = output
        self.generation = generation
        self.uv = uv
        self.request = request
        self.manifest = manifest
        self.drift = drift
        self.work = work
        self.detail = detail
        self.venv = generation.venv
        self.site = manifest.script.site_packages
        self.cache = read_stat_cache(generation.path / STATS)
        self.modes = {row.path: row.permissions for row in self.cache.venv}
        self.restored: set[str] = set()
        """Paths that got a file whose content was compared with the manifest."""

    def run(self) -> Repaired:
        drift = self.drift
        unwanted, removed = self.unwanted()
        rows = (*drift.changed, *drift.missing)
        sources = self.sources([row for row in rows if row.owner != ENVSPEC])
        # Nothing is touched before everything that will be needed is there.
        for package in unwanted:
            self.take_out(package)
        self.put_back(rows, sources)
        for row in drift.modes:
            self.set_mode(self.venv / row.path, row)
        if drift.toolkit:
            self.put_back_toolkit()
        if drift.cuda:
            self.put_back_cuda()
        if drift.script:
            self.detail("writing the script")
            write_synced(self.generation.script, render_script(self.manifest.script).encode())
        self.refresh_stat_cache()
        if drift or unwanted:
            sync_file_system(self.generation.path)
        return Repaired(
            files=len(drift.rows),
            packages=tuple(sorted({row.owner for row in drift.rows} - {UV, ENVSPEC})),
            removed=removed,
            toolkit=len(drift.toolkit) + drift.cuda,
            script=drift.script,
            report=verify(self.output, self.generation),
        )

    # ---- packages that came later

    def unwanted(self) -> tuple[tuple[AddedPackage, ...], tuple[str, ...]]:
        """The packages to take out: other versions of locked packages, and with `prune` packages nobody locked."""
        locked = {p.name for p in self.manifest.packages}
        others = [p for p in self.drift.packages if p.name in locked]
        extra = [p for p in self.drift.packages if p.name not in locked] if self.request.prune else []
        return (*others, *extra), tuple(sorted({p.name for p in extra}))

    def take_out(self, package: AddedPackage) -> None:
        """Remove the files that a later package brought, as far as no locked one owns them."""
        expected = {row.path for row in self.manifest.files}
        directories = {self.venv / self.site / package.dist_info}
        for path in package.paths - expected:
            at = self.venv / path
            if not self.inside(at):
                continue
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                at.unlink()
            directories.add(at.parent)
        self.remove_empty(directories)

    def remove_empty(self, directories: Iterable[Path]) -> None:
        """Remove directories that hold nothing any more, byte code aside, and then those above them."""
        for directory in sorted(directories, key=lambda d: -len(d.parts)):
            at = directory
            while at != self.venv and at.is_relative_to(self.venv) and self.inside(at):
                try:
                    left = [e.name for e in os.scandir(at)]
                    if left == [BYTECODE]:
                        remove_tree(at / BYTECODE)
                    at.rmdir()
                except OSError:
                    break
                at = at.parent

    def inside(self, path: Path) -> bool:
        """Whether a path lies in the venv also when every link on the way to it is followed."""
        return Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(self.venv))

    # ---- files

    def put_back(self, rows: Iterable[FileRow], sources: Mapping[str, Path]) -> None:
        """Give each path its file again."""
        for row in rows:
            if row.owner != ENVSPEC:
                self.move(sources[row.owner] / row.path, self.venv / row.path, row)
                self.restored.add(row.path)
                continue
            text = pth_files().get(row.path.rpartition("/")[2])
            if text is not None:
                self.clear(self.venv / row.path)
                write_synced(self.venv / row.path, text.encode())
                self.set_mode(self.venv / row.path, row)

    def sources(self, rows: Sequence[FileRow]) -> dict[str, Path]:
        """For each owner a venv that holds its files as the manifest names them."""
        if not rows:
            return {}
        sources = self.fresh_venvs({row.owner for row in rows}, "fresh")
        self.detail(f"comparing {len(rows)} files with the manifest")
        lost = _other_than_locked(sources, rows)
        bad = {row.owner for row in lost} - {UV}
        if bad:
            # The cache gave what nobody locked: it was edited through a link.
            self.detail(f"fetching {', '.join(sorted(bad))} anew")
            self.uv.clean(sorted(bad), self.work)
            sources |= self.fresh_venvs(bad, "anew")
            lost = [row for row in lost if row.owner == UV]
            lost += _other_than_locked(sources, [row for row in rows if row.owner in bad])
        if lost:
            owner = lost[0].owner
            raise EnvspecError(
                "repair-impossible",
                f"{lost[0].path} cannot be made again as it was",
                where=str(self.venv),
                why="another uv or Python made the venv" if owner == UV else f"{owner} brings another one",
                fix="build again: the next build makes a new generation, and this one stays until envspec gc",
            )
        return sources

    def fresh_venvs(self, owners: set[str], name: str) -> dict[str, Path]:
        """Venvs beside the damaged one with the packages of `owners`: one for each that won a path, one for the rest.

        So no two packages that own a path with different content meet, and their order does not matter.
        """
        winners = sorted({winner for _, winner in self.manifest.winners} & owners)
        rest = owners - set(winners)
        found = dict.fromkeys(rest, self.fresh_venv(rest - {UV}, f"{name}-0")) if rest else {}
        for number, winner in enumerate(winners, 1):
            found[winner] = self.fresh_venv({winner}, f"{name}-{number}")
        return found

    def fresh_venv(self, names: set[str], name: str) -> Path:
        """A venv beside the damaged one, with some of its packages."""
        work = self.work / name
        installation_project(self.request.indexes).write(work)
        venv = work / "venv"
        self.uv.venv(venv, Path(self.manifest.inputs.python_path), work, self.manifest.script.prompt)
        if names:
            requirements = work / "requirements.txt"
            requirements.write_text(_requirements(self.manifest, names), encoding="utf-8")
            self.uv.install(requirements, venv / "bin" / "python", work, sdists=self.sdists(names))
        return venv

    def sdists(self, names: Iterable[str]) -> tuple[str, ...]:
        """The packages that were built from source, which uv would otherwise not do."""
        files = {p.name: p.file for p in self.manifest.packages}
        return tuple(name for name in names if not files.get(name, ".whl").endswith(".whl"))

    def move(self, source: Path, target: Path, row: FileRow) -> None:
        self.clear(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if target.lstat().st_ino == source.lstat().st_ino:
                target.unlink()  # rename does nothing between two names of one file
        source.replace(target)
        self.set_mode(target, row)

    def clear(self, target: Path) -> None:
        """Make room: nothing but a file or link may stand at a path that gets one, and no link on the way to it."""
        if not self.inside(target):
            self.unlink_outward(target)
        if target.is_dir() and not target.is_symlink():
            raise EnvspecError(
                "repair-impossible",
                f"{target} is a directory that envspec did not make",
                where=str(self.venv),
                fix="move it away and repair again",
            )

    def unlink_outward(self, target: Path) -> None:
        """A directory of the venv that was replaced by a link is made a directory again."""
        at = self.venv
        for part in target.relative_to(self.venv).parts[:-1]:
            at = at / part
            if at.is_symlink() and not self.inside(at / "x"):
                at.unlink()
                return

    def set_mode(self, path: Path, row: FileRow) -> None:
        if row.target:
            return
        info = path.lstat()
        mode = self.modes.get(row.path)
        if mode is None:
            mode = 0o755 if row.executable else 0o644
        if stat.S_ISREG(info.st_mode) and stat.S_IMODE(info.st_mode) != mode:
            path.chmod(mode)

    # ---- the toolkit

    def put_back_toolkit(self) -> None:
        """Put files of CUDA_HOME back from the venv, which has just been repaired."""
        from envspec.toolkit.layout import plan_tree
        from envspec.toolkit.toolchain import driver_stub
        from envspec.toolkit.write import put_back

        site = self.venv / self.site
        published = dist_infos(((row.path, row.owner) for row in self.manifest.files), self.site)
        tree = plan_tree(installed_packages(site, published))
        if tree.digest != self.manifest.toolchain:
            raise EnvspecError(
                "repair-impossible",
                "the toolkit's packages are not those of the manifest",
                where=str(site),
                fix="build again",
            )
        put_back(
            tree,
            site,
            self.output.toolchains_dir / self.manifest.script.toolchain,
            driver_stub(tree, site, self.manifest.inputs.machine),
            [row.path for row in self.drift.toolkit],
            {row.path: row.permissions for row in self.cache.toolkit},
        )

    def put_back_cuda(self) -> None:
        link = self.generation.path / "cuda"
        temporary = link.with_name(".cuda.new")
        remove_tree(temporary)
        temporary.symlink_to(f"../../toolchains/{self.manifest.script.toolchain}")
        temporary.replace(link)

    # ---- the stat cache

    def refresh_stat_cache(self) -> None:
        """Write the stat cache anew: what was put back is what the manifest says, at another time and inode."""
        toolkit = self.output.toolchains_dir / self.manifest.script.toolchain
        stats = StatCache(
            _refreshed(self.venv, self.cache.venv, self.restored, self.manifest.files),
            _refreshed(toolkit, self.cache.toolkit, set(), self.manifest.toolkit),
        )
        write_synced(self.generation.path / STATS, msgspec.msgpack.encode(stats))


def _refreshed(
    root: Path, old: Iterable[StatRow], restored: set[str], rows: Iterable[FileRow | TreeRow]
) -> tuple[StatRow, ...]:
    """The rows of now for every file that is as the manifest says; the old ones, which will not fit, for the rest."""
    before = {row.path: row for row in old}
    expected = {row.path: row for row in rows}
    found = []
    for now in tree_stats(root):
        row = expected.get(now.path)
        if row is None:
            continue
        kept = before.get(now.path)
        good = (
            bool(row.target)
            or now.path in restored
            or (kept is not None and now.is_unchanged_since(kept))
            or file_sha256(root / now.path) == row.sha256
        )
        if good:
            found.append(now if kept is None else msgspec.structs.replace(now, mode=kept.mode))
        elif kept is not None:
            found.append(kept)
    return tuple(found)


def _other_than_locked(sources: Mapping[str, Path], rows: Sequence[FileRow]) -> list[FileRow]:
    """The rows that the source of their owner does not hold as the manifest names them."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        good = pool.map(lambda row: _is_as_locked(sources[row.owner] / row.path, row), rows)
        return [row for row, same in zip(rows, good, strict=True) if not same]


def _is_as_locked(path: Path, row: FileRow) -> bool:
    """Whether a file that was made anew is the one that the manifest names."""
    try:
        if row.target:
            return os.readlink(path) == row.target  # noqa: PTH115
        return file_sha256(path) == row.sha256
    except OSError:
        return False


def _requirements(manifest: Manifest, names: Iterable[str]) -> str:
    wanted = set(names)
    packages = [
        LockedPackage(
            name=p.name, version=p.version, marker="", files=(LockedFile(p.file, p.sha256, p.size),)
        )
        for p in manifest.packages
        if p.name in wanted
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
