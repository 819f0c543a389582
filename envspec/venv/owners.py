"""Whose file is this? Installed packages, the paths in their RECORDs, which of several owners has a path, and what came
after publishing. Whether a file is right is told by `inventory` for a venv that was just made, and by the manifest for a
published one; both take the owner from here.

A dist-info directory is read by its name: METADATA, which may say something else, is a file that anybody may have written.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec
from packaging.utils import canonicalize_name

from envspec.fs import read_start, walk
from envspec.report.errors import EnvspecError
from envspec.venv.record import RecordRow, in_venv, read_record

ENVSPEC = "envspec"
"""The owner of what envspec writes into a venv."""

UV = "uv"
"""The owner of what uv itself puts into a venv."""

_DIST_INFO = ".dist-info"
_INSTALLER_FILES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")


def is_installer_file(path: str) -> bool:
    """Tell whether a path is one that an installer writes into a dist-info itself: it tells how, not what was installed."""
    directory, _, name = path.rpartition("/")
    return name in _INSTALLER_FILES and directory.endswith(_DIST_INFO)


class Distribution(msgspec.Struct, frozen=True):
    """Describes one dist-info directory. `name` is normalized, `version` is spelled as in the directory's name."""

    name: str
    version: str
    dist_info: str


class InstalledPackage(Distribution, frozen=True):
    """Describes a distribution with the rows of its RECORD."""

    rows: tuple[RecordRow, ...]


class AddedPackage(Distribution, frozen=True):
    """Describes a distribution that came after publishing: who installed it, and the paths in the venv that it calls its own."""

    installer: str
    paths: frozenset[str]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def distributions(site: Path) -> tuple[Distribution, ...]:
    """List every dist-info in a site-packages directory, by name and version; none where there is no such directory.

    pip renames what it is removing to `~NAME`, and leaves it so if it is ended then: that is no package any more.
    """
    found = []
    try:
        with os.scandir(site) as entries:
            names = [
                e.name for e in entries if e.name.endswith(_DIST_INFO) and e.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return ()
    for directory in names:
        name, _, version = directory.removesuffix(_DIST_INFO).rpartition("-")
        if name and not name.startswith("~"):
            found.append(Distribution(canonicalize_name(name), version, directory))
    return tuple(sorted(found, key=lambda d: (d.name, d.version)))


def installed_packages(site: Path, only: Collection[str] | None = None) -> tuple[InstalledPackage, ...]:
    """Read the RECORD of every package, or of the dist-infos in `only`. Raises EnvspecError `record-damaged`."""
    return tuple(
        InstalledPackage(d.name, d.version, d.dist_info, read_record(site / d.dist_info / "RECORD"))
        for d in distributions(site)
        if only is None or d.dist_info in only
    )


# ---- a venv that was just made: several owners of one path


class Conflict(msgspec.Struct, frozen=True):
    """Describes a path that several packages own with different content: `owners` are (package, sha256) in name order."""

    path: str
    owners: tuple[tuple[str, str], ...]


def conflicts(packages: Iterable[InstalledPackage]) -> tuple[Conflict, ...]:
    """Find the paths with more than one owner and more than one content."""
    first: dict[str, tuple[str, str]] = {}
    shared: dict[str, list[tuple[str, str]]] = {}
    for package in packages:
        for row in package.rows:
            owner = (package.name, row.sha256)
            other = first.setdefault(row.path, owner)
            if other is not owner:
                shared.setdefault(row.path, [other]).append(owner)
    return tuple(
        Conflict(path, tuple(sorted(who)))
        for path, who in sorted(shared.items())
        if len({sha for _, sha in who}) > 1
    )


def preferred(conflict: Conflict, precedence: Mapping[str, int]) -> tuple[str, str] | None:
    """Return the owner (package, sha256) whose file the declared order wants on disk; None if no owner is declared."""
    declared = [owner for owner in conflict.owners if owner[0] in precedence]
    return max(declared, key=lambda owner: precedence[owner[0]], default=None)


class OwnedFile(NamedTuple):
    """Holds what a RECORD tells of a path: its package, and the content (sha256 in hex, size in bytes; empty and -1 if untold)."""

    package: str
    sha256: str
    size: int


def owned_files(
    packages: Iterable[InstalledPackage], site_packages: str, winners: Mapping[str, str]
) -> dict[str, OwnedFile]:
    """Give each path in the venv its one owner. `winners` maps paths in site-packages that packages conflict about."""
    owned: dict[str, OwnedFile] = {}
    for package in packages:
        for row in package.rows:
            if winners.get(row.path, package.name) == package.name:
                owned[in_venv(row.path, site_packages)] = OwnedFile(package.name, row.sha256, row.size)
    return owned


# ---- a published venv: what came later


def dist_infos(files: Iterable[tuple[str, str]], site_packages: str) -> dict[str, str]:
    """Find the dist-info directories, and their packages, among (path, package) of the files of a venv.

    Those that packages carry inside themselves (`setuptools/_vendor`) are none of the venv's.
    """
    found = {}
    for path, package in files:
        if path.endswith(f"{_DIST_INFO}/RECORD"):
            directory = path.removesuffix("/RECORD").removeprefix(f"{site_packages}/")
            if "/" not in directory:
                found[directory] = package
    return found


def added_package(site: Path, site_packages: str, distribution: Distribution) -> AddedPackage:
    """Read what a distribution that nobody locked calls its own: the files in its RECORD and in its dist-info.

    A RECORD that is missing or damaged names nothing, and paths that lead out of the venv are left out.
    """
    info = site / distribution.dist_info
    try:
        rows = read_record(info / "RECORD")
    except EnvspecError:
        rows = ()
    paths = {in_venv(row.path, site_packages) for row in rows if not row.path.startswith("/")}
    paths = {path for path in paths if ".." not in path.split("/") and "\0" not in path}
    paths |= {f"{site_packages}/{distribution.dist_info}/{path}" for path, _ in walk(info)}
    d = distribution
    return AddedPackage(d.name, d.version, d.dist_info, _installer(info), frozenset(paths))


def _installer(dist_info: Path) -> str:
    """Read who installed it: `uv` or `pip`, as INSTALLER tells; it is text from a file anybody may have written."""
    try:
        text = read_start(dist_info / "INSTALLER", 64).decode("utf-8", "replace").strip()
    except OSError:
        text = ""
    return text if text.isascii() and text.isalnum() else "an unknown installer"


class Owners:
    """Answers whose a path in the venv is, in words for findings: `torch 2.11.0`, or nothing if no package owns it.

    `files` are (path, package) of what was installed, `packages` their (name, version). A path in `drifted` belongs to the
    package among `added` that names it, if there is one.
    """

    def __init__(
        self,
        site_packages: str,
        files: Iterable[tuple[str, str]],
        packages: Iterable[tuple[str, str]],
        added: Iterable[AddedPackage] = (),
        drifted: Collection[str] = (),
    ) -> None:
        self.prefix = site_packages + "/"
        self._versions = dict(packages)
        self._files = files
        self._added = {path: p for p in added for path in p.paths if path in drifted}
        self._versions |= {p.name: p.version for p in added}

    @cached_property
    def _packages(self) -> dict[str, str]:
        """The package of each path."""
        found = {path: name for path, name in self._files if name not in (UV, ENVSPEC)}
        return found | {path: package.name for path, package in self._added.items()}

    def _title(self, package: str) -> str:
        return f"{package} {self._versions[package]}" if package in self._versions else package

    def of(self, path: str) -> str:
        """Return `torch 2.11.0` for a path relative to the venv; empty for a file that no package owns."""
        return self._title(self._packages.get(path, ""))

    def of_directory(self, path: str) -> str:
        """Return the first package, by name, with a file in a directory relative to the venv."""
        start = path.rstrip("/") + "/"
        return self._title(min((p for f, p in self._packages.items() if f.startswith(start)), default=""))

    def owns(self, package: str, path: str) -> bool:
        """Tell whether a path relative to the venv is a file of an installed package."""
        return self._packages.get(path) == package

    def version(self, package: str) -> str:
        """Return the version of an installed package; empty if it is not there."""
        return self._versions.get(package, "")

    @cached_property
    def _paths_by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self._packages:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    def package_of(self, path: str) -> str:
        """Return the name of the package that owns a path relative to the venv; empty if none does."""
        return self._packages.get(path, "")

    def lost(self, library: str, present: Collection[str]) -> tuple[str, ...]:
        """Find the packages that own a file called `library` of which none is `present`; none if one of them is there."""
        paths = self._paths_by_name.get(library, ())
        if any(path in present for path in paths):
            return ()
        return tuple(map(self._title, sorted({self._packages[path] for path in paths})))
