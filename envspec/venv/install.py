"""Files on disk: a venv with exactly the locked files, and one winner for every path that two wheels own.

uv installs wheels in parallel, so a path in two wheels holds whichever was written last: seven installs of one lock gave
three different trees (measured). Packages that are declared to win are therefore installed after all others, one by one
in the declared order, and the bytes on disk are compared with the winner's RECORD.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from envspec.fs import file_sha256, walk
from envspec.host.python import ChosenPython
from envspec.lock import Lock, LockedPackage, render_lock
from envspec.lock.selection import needed_packages
from envspec.profile import Profile
from envspec.report.errors import EnvspecError
from envspec.uv.project import installation_project
from envspec.uv.run import Uv
from envspec.venv.inventory import require_whole
from envspec.venv.record import Conflict, InstalledPackage, conflicts, installed_packages, winner


class Venv(msgspec.Struct, frozen=True):
    """A venv and what is in it."""

    path: Path
    site_packages: Path
    packages: tuple[InstalledPackage, ...]
    conflicts: tuple[Conflict, ...] = ()

    @property
    def python(self) -> Path:
        """The venv's interpreter."""
        return self.path / "bin" / "python"

    def winners(self, profile: Profile) -> tuple[tuple[str, str], ...]:
        """(path, package) for every contested path, by the order that the profile declares."""
        order = {name: rank for rank, name in enumerate(profile.precedence)}
        return tuple((c.path, w[0]) for c in self.conflicts if (w := winner(c, order)))


def install(profile: Profile, lock: Lock, python: ChosenPython, uv: Uv, at: Path, work: Path) -> Venv:
    """Make a venv at `at` (which does not exist yet); `work` is an empty directory for uv's inputs.

    Raises whatever uv fails with, and EnvspecError `file-conflict`, `file-winner` or `install-incomplete`.
    """
    needed = needed_packages(lock, python)
    installation_project(profile.indexes).write(work)
    uv.venv(at, python.path, work, prompt=profile.name)
    scaffold = frozenset(path for path, _ in walk(at))
    names = {p.name for p in needed}
    last = [name for name in profile.precedence if name in names]
    batches = [
        [p for p in needed if p.name not in last],
        *([p for p in needed if p.name == name] for name in last),
    ]
    for number, batch in enumerate(b for b in batches if b):
        requirements = work / f"requirements-{number}.txt"
        requirements.write_text(
            render_lock(msgspec.structs.replace(lock, packages=tuple(batch))), encoding="utf-8"
        )
        uv.install(requirements, at / "bin" / "python", work, sdists=profile.allow_sdists)
    found = check_venv(profile, needed, at, python)
    require_whole(at, found.site_packages.relative_to(at).as_posix(), found.packages, scaffold)
    return found


def site_packages_of(venv: Path, python: ChosenPython) -> Path:
    """`lib/python3.12/site-packages` of a venv."""
    return venv / "lib" / f"python{python.minor}" / "site-packages"


def check_venv(profile: Profile, needed: tuple[LockedPackage, ...], at: Path, python: ChosenPython) -> Venv:
    """Read back what was installed and compare it with what was locked and declared."""
    site = site_packages_of(at, python)
    packages = installed_packages(site)
    expected = {p.name for p in needed}
    actual = {p.name for p in packages}
    if expected != actual:
        raise EnvspecError(
            "install-incomplete",
            "what was installed is not what was locked",
            where=str(site),
            why="\n".join(
                [f"missing: {n}" for n in sorted(expected - actual)]
                + [f"unlocked: {n}" for n in sorted(actual - expected)]
            ),
        )
    found = conflicts(packages)
    order = {name: rank for rank, name in enumerate(profile.precedence)}
    _require_winners(profile, found, order)
    for conflict in found:
        chosen = winner(conflict, order)
        assert chosen is not None
        if file_sha256(site / conflict.path) != chosen[1]:
            raise EnvspecError(
                "file-winner",
                f"{conflict.path} is not the file of {chosen[0]}, which was declared to win",
                where=os.fspath(site),
                fix="this is a fault of envspec or of the file system; build again",
            )
    return Venv(at, site, packages, found)


def _require_winners(profile: Profile, found: tuple[Conflict, ...], order: dict[str, int]) -> None:
    undeclared: dict[tuple[str, ...], list[str]] = {}
    for conflict in found:
        if winner(conflict, order) is None:
            undeclared.setdefault(tuple(name for name, _ in conflict.owners), []).append(conflict.path)
    if undeclared:
        lines = [
            f"{' and '.join(who)}: {len(p)} paths, such as {p[0]}" for who, p in sorted(undeclared.items())
        ]
        suggestion = ", ".join(f'"{who[-1]}"' for who in sorted(undeclared))
        raise EnvspecError(
            "file-conflict",
            "packages own the same paths with different content, and none is declared to win",
            where=f"{profile.path}: install.precedence",
            why="\n".join(lines),
            fix=f"name the one whose files are right, for example: precedence = [{suggestion}]",
        )
