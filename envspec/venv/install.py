"""Files on disk: a venv with exactly the locked files, and one owner for every path that two wheels bring.

uv installs wheels in parallel, so a path in two wheels holds whichever was written last: seven installs of one lock gave
three different trees (measured). Packages that are declared to win are therefore installed after all others, one by one
in the declared order, and the bytes on disk are compared with the RECORD of the one that is to win.

The tree is walked and the RECORDs are read once, at the end; later stages take both from `Venv`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec
from packaging.version import InvalidVersion, Version

from envspec.fs import file_sha256, walk
from envspec.host.python import ChosenPython
from envspec.lock import Lock, LockedPackage, render_lock
from envspec.lock.selection import needed_files, needed_packages
from envspec.profile import Profile
from envspec.report.errors import EnvspecError
from envspec.report.findings import counted
from envspec.uv.project import installation_project
from envspec.uv.run import Uv
from envspec.venv.inventory import Inventory, misrecorded, read_tree, require_whole, take_inventory
from envspec.venv.owners import (
    Conflict,
    InstalledPackage,
    conflicts,
    installed_packages,
    owned_files,
    preferred,
)
from envspec.venv.record import in_venv
from envspec.wheels.access import access_of
from envspec.wheels.contents import kept_members
from envspec.wheels.file import WheelMember
from envspec.wheels.strays import strays


class Venv(msgspec.Struct, frozen=True):
    """Describes a venv, its packages and all of its files. `winners` names, for each path in site-packages about which
    packages conflict, the package whose file is there."""

    path: Path
    site_packages: Path
    packages: tuple[InstalledPackage, ...]
    winners: tuple[tuple[str, str], ...]
    inventory: Inventory
    misrecorded: tuple[str, ...] = ()
    """Files about which the RECORD of their wheel is wrong. They are as the wheel holds them."""


def install(
    profile: Profile, lock: Lock, python: ChosenPython, uv: Uv, at: Path, work: Path, *, settle: bool = False
) -> Venv:
    """Make a venv at `at` (which does not exist yet); `work` is an empty directory for uv's inputs.

    Where packages conflict outside of what they are imported as, the last one by name takes precedence. With `settle` that
    goes for every conflict that the profile does not decide.

    Raises whatever uv fails with, and EnvspecError `file-conflict`, `file-winner`, `install-corrupt`, `install-incomplete` or
    `record-damaged`.
    """
    needed = needed_packages(lock, python)
    installation_project(profile.indexes).write(work)
    uv.venv(at, python.path, work, prompt=profile.name)
    scaffold = frozenset(path for path, _ in walk(at))
    names = {p.name for p in needed}
    last = [name for name in profile.precedence if name in names]

    def add(names: Iterable[str], *, again: bool = False) -> None:
        batch = tuple(p for p in needed if p.name in names)
        if batch:
            requirements = work / f"requirements-{batch[0].name}.txt"
            requirements.write_text(
                render_lock(msgspec.structs.replace(lock, packages=batch)), encoding="utf-8"
            )
            uv.install(requirements, at / "bin" / "python", work, sdists=profile.allow_sdists, again=again)

    add(names - set(last))
    for name in _out_of_place(site_packages_of(at, python), settle=settle):
        add([name], again=True)
    for name in last:
        add([name])
    archives = {package.name: file.sha256 for package, file in needed_files(lock, python)}
    access = access_of(profile, uv)
    return _read_back(
        profile,
        needed,
        at,
        python,
        scaffold,
        lambda package: kept_members(archives.get(package, ""), access),
        settle=settle,
    )


def _out_of_place(site: Path, *, settle: bool) -> list[str]:
    """Return the packages to install once more, in this order, so that each undeclared conflict is settled by its rule."""
    packages = installed_packages(site)
    found = conflicts(packages)
    unused = _strays(packages, found)
    chosen = {c.path: c.owners[-1] for c in found if settle or c.path in unused}
    if all(file_sha256(site / path) == sha256 for path, (_, sha256) in chosen.items()):
        return []
    return sorted({name for name, _ in chosen.values()})


def _strays(packages: Iterable[InstalledPackage], found: Iterable[Conflict]) -> frozenset[str]:
    contested = {conflict.path: [name for name, _ in conflict.owners] for conflict in found}
    if not contested:
        return frozenset()
    return strays(contested, {p.name: [row.path for row in p.rows] for p in packages})


def site_packages_of(venv: Path, python: ChosenPython) -> Path:
    """Return `lib/python3.12/site-packages` of a venv."""
    return venv / "lib" / f"python{python.minor}" / "site-packages"


def _read_back(
    profile: Profile,
    needed: Iterable[LockedPackage],
    at: Path,
    python: ChosenPython,
    scaffold: frozenset[str],
    archived: Callable[[str], tuple[WheelMember, ...]],
    *,
    settle: bool,
) -> Venv:
    """Read what was installed, and compare it with what was locked, declared and recorded."""
    site = site_packages_of(at, python)
    site_packages = site.relative_to(at).as_posix()
    packages = installed_packages(site)
    _require_locked(site, needed, packages)
    found = conflicts(packages)
    unused = frozenset(c.path for c in found) if settle else _strays(packages, found)
    winners = _winners(profile, found, unused)
    owned = owned_files(packages, site_packages, {path: package for path, (package, _) in winners.items()})
    tree = read_tree(at)
    require_whole(at, tree, owned, scaffold)
    _require_winners(site, winners)

    @cache
    def of_archive(package: str) -> dict[str, tuple[int, int]]:
        return {in_venv(m.path, site_packages): (m.crc, m.size) for m in archived(package)}

    wrong = misrecorded(at, tree, owned, of_archive)
    inventory = take_inventory(at, site_packages, tree, owned | wrong, packages)
    settled = tuple((path, package) for path, (package, _) in winners.items())
    return Venv(at, site, packages, settled, inventory, tuple(sorted(wrong)))


def _require_locked(
    site: Path, needed: Iterable[LockedPackage], packages: Iterable[InstalledPackage]
) -> None:
    """Make sure that exactly the locked packages are there, at their versions. Raises EnvspecError `install-incomplete`."""
    expected = {(p.name, _comparable(p.version)) for p in needed}
    actual = {(p.name, _comparable(p.version)) for p in packages}
    if expected != actual:
        raise EnvspecError(
            "install-incomplete",
            "what was installed is not what was locked",
            where=str(site),
            why="\n".join(
                [f"missing: {name} {version}" for name, version in sorted(expected - actual)]
                + [f"unlocked: {name} {version}" for name, version in sorted(actual - expected)]
            ),
        )


def _comparable(version: str) -> str:
    """A version in normal form: a directory's name has `_` for `-`, and may have zeros that a lock has not."""
    try:
        return str(Version(version.replace("_", "-")))
    except InvalidVersion:
        return version


def _winners(
    profile: Profile, found: Iterable[Conflict], unused: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Find the (package, sha256) that has each conflicting path, by the order that the profile declares.

    Of `unused` paths it is the last one by name. Raises EnvspecError `file-conflict` where neither decides.
    """
    precedence = {name: rank for rank, name in enumerate(profile.precedence)}
    winners: dict[str, tuple[str, str]] = {}
    undeclared: dict[tuple[str, ...], list[str]] = {}
    for conflict in found:
        if (chosen := preferred(conflict, precedence)) is not None:
            winners[conflict.path] = chosen
        elif conflict.path in unused:
            winners[conflict.path] = conflict.owners[-1]
        else:
            undeclared.setdefault(tuple(name for name, _ in conflict.owners), []).append(conflict.path)
    if undeclared:
        suggestion = ", ".join(f'"{who[-1]}"' for who in sorted(undeclared))
        raise EnvspecError(
            "file-conflict",
            "packages own the same paths with different content, and none is declared to win",
            where=f"{profile.path}: install.precedence",
            why="\n".join(
                f"{' and '.join(who)}: {counted(len(p), 'path')}, such as {p[0]}"
                for who, p in sorted(undeclared.items())
            ),
            fix=f"name the one whose files are right, for example: precedence = [{suggestion}]",
        )
    return winners


def _require_winners(site: Path, winners: Mapping[str, tuple[str, str]]) -> None:
    """Make sure that paths hold the files of the packages that were declared to win. Raises EnvspecError `file-winner`."""
    for path, (package, sha256) in winners.items():
        if file_sha256(site / path) != sha256:
            raise EnvspecError(
                "file-winner",
                f"{path} is not the file of {package}, which was declared to win",
                where=str(site),
                fix="this is a fault of envspec or of the file system; build again",
            )
