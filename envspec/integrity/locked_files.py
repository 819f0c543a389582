"""The files of a generation once more, as they were locked: its packages are installed into venvs of their own, by the same uv
and the same locked hashes.

uv links files from its cache, so whoever edits a file in place edits the cache too. What comes out of the cache is therefore
compared with the manifest, and packages that are damaged there are fetched anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from envspec.fs import file_sha256
from envspec.lock import Lock, LockedFile, LockedPackage, render_lock
from envspec.output.manifest import Manifest, ManifestPackage
from envspec.profile.model import Index
from envspec.report.errors import EnvspecError
from envspec.uv.project import installation_project
from envspec.uv.run import Uv
from envspec.venv.inventory import FileRow
from envspec.venv.owners import UV


class LockedFiles:
    """Makes the files of `venv`, which a manifest names, once more below `work`. `indexes` are those of the profile."""

    def __init__(
        self,
        venv: Path,
        manifest: Manifest,
        uv: Uv,
        indexes: Sequence[Index],
        work: Path,
        detail: Callable[[str], None],
    ) -> None:
        self._venv = venv
        self._manifest = manifest
        self._uv = uv
        self._indexes = indexes
        self._work = work
        self._detail = detail

    def make(self, rows: Sequence[FileRow]) -> dict[str, Path]:
        """Return, for each owner of `rows`, a venv that holds these files of its as the manifest names them.

        Raises EnvspecError `repair-impossible` where they cannot be made as they were, and whatever uv fails with.
        """
        if not rows:
            return {}
        venvs = self._fresh_venvs({row.owner for row in rows}, "fresh")
        self._detail(f"comparing {len(rows)} files with the manifest")
        wrong = _other_than_locked(venvs, rows)
        damaged = {row.owner for row in wrong} - {UV}
        if damaged:
            self._detail(f"fetching {', '.join(sorted(damaged))} anew")
            self._uv.clean(sorted(damaged), self._work)
            venvs |= self._fresh_venvs(damaged, "anew")
            wrong = _other_than_locked(venvs, [row for row in rows if row.owner in damaged | {UV}])
        if wrong:
            path, owner = wrong[0].path, wrong[0].owner
            raise EnvspecError(
                "repair-impossible",
                f"{path} cannot be made again as it was",
                where=str(self._venv),
                why="another uv or Python made the venv" if owner == UV else f"{owner} brings another one",
                fix="build again: the next build makes a new generation, and this one stays until envspec gc",
            )
        return venvs

    def _fresh_venvs(self, owners: set[str], name: str) -> dict[str, Path]:
        """Make a venv for each package that has a path which others own too, and one for the rest.

        So no two packages that own a path with different content meet, and their order does not matter.
        """
        alone = sorted({package for _, package in self._manifest.winners} & owners)
        rest = owners - set(alone)
        found = dict.fromkeys(rest, self._fresh_venv(rest - {UV}, f"{name}-0")) if rest else {}
        for number, package in enumerate(alone, 1):
            found[package] = self._fresh_venv({package}, f"{name}-{number}")
        return found

    def _fresh_venv(self, names: Collection[str], name: str) -> Path:
        """Make a venv with some of the packages."""
        work, inputs = self._work / name, self._manifest.inputs
        installation_project(self._indexes).write(work)
        venv = work / "venv"
        self._uv.venv(venv, Path(inputs.python_path), work, self._manifest.script.prompt)
        packages = [_locked(p) for p in self._manifest.packages if p.name in names]
        if packages:
            requirements = work / "requirements.txt"
            requirements.write_text(_requirements(self._manifest, packages), encoding="utf-8")
            # The packages that were built from source, which uv would otherwise not do.
            sdists = [p.name for p in packages if not p.files[0].is_wheel]
            self._uv.install(requirements, venv / "bin" / "python", work, sdists=tuple(sdists))
        return venv


def _other_than_locked(venvs: Mapping[str, Path], rows: Sequence[FileRow]) -> list[FileRow]:
    """Find the rows that the venv of their owner does not hold as the manifest names them."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        good = pool.map(lambda row: _is_as_locked(venvs[row.owner] / row.path, row), rows)
        return [row for row, same in zip(rows, good, strict=True) if not same]


def _is_as_locked(path: Path, row: FileRow) -> bool:
    try:
        if row.target:
            return os.readlink(path) == row.target  # noqa: PTH115 - a Path would tidy the target up
        return file_sha256(path) == row.sha256
    except OSError:
        return False


def _locked(package: ManifestPackage) -> LockedPackage:
    file = LockedFile(package.file, package.sha256, package.size)
    return LockedPackage(name=package.name, version=package.version, marker="", files=(file,))


def _requirements(manifest: Manifest, packages: Iterable[LockedPackage]) -> str:
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
