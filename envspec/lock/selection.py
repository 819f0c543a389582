"""Which packages of a lock a target needs, and which file of each it gets: the one place where a wheel is chosen.

An installer chooses again when it is given the locked files; what is decided here is what it will take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envspec.host.python import ChosenPython
from envspec.lock.model import Lock, LockedFile, LockedPackage
from envspec.lock.targets import Target, target_environment
from envspec.report.errors import EnvspecError, UsageError


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a locked package that the target needs, and the file an installer takes; None if there is none."""

    package: LockedPackage
    file: LockedFile | None
    requires_python: str = ""

    @property
    def version(self) -> Version:
        """Return the locked version."""
        return Version(self.package.version)

    def __str__(self) -> str:
        return f"{self.package.name} {self.package.version}"


def target_tags(target: Target) -> list[Tag]:
    """Return the tags that an installer accepts on the target, best first. glibc is the one of this host."""
    version = tuple(int(n) for n in target.minor.split("."))
    platforms = list(platform_tags())
    if platforms and not platforms[0].endswith(target.machine):
        # Checked for another machine than this one: assume a current glibc.
        platforms = [f"manylinux_2_{n}_{target.machine}" for n in range(39, 16, -1)]
        platforms += [f"manylinux2014_{target.machine}", f"linux_{target.machine}"]
    return [*cpython_tags(version, platforms=platforms), *compatible_tags(version, platforms=platforms)]


def ranks(target: Target) -> dict[Tag, int]:
    """Return the place of each tag in the order of `target_tags`."""
    return {tag: place for place, tag in enumerate(target_tags(target))}


def best_wheel(filenames: Iterable[str], ranks: Mapping[Tag, int]) -> str | None:
    """Return the wheel that an installer takes: of the best tag, and of equals the first by name; None if none fits."""
    found = []
    for filename in filenames:
        try:
            tags = parse_wheel_filename(filename)[3]
        except InvalidWheelFilename:
            continue
        found += [(ranks[tag], filename) for tag in tags if tag in ranks]
    return min(found)[1] if found else None


def select(lock: Lock, target: Target) -> dict[str, Selected]:
    """Return what the target needs of a lock, with the file it gets: the best wheel, and an sdist only where no wheel fits."""
    places = ranks(target)
    return {p.name: Selected(package=p, file=_file(p, places)) for p in _needed(lock, target)}


def needed_packages(lock: Lock, python: ChosenPython) -> tuple[LockedPackage, ...]:
    """Return the part of a lock that one interpreter needs. Raises EnvspecError `machine-not-locked`."""
    return _needed(lock, _target(lock, python))


def needed_files(lock: Lock, python: ChosenPython) -> tuple[tuple[LockedPackage, LockedFile], ...]:
    """Return what one interpreter needs, each with the file that it gets.

    Raises EnvspecError `machine-not-locked`, UsageError `no-wheel`.
    """
    rows = []
    for one in select(lock, _target(lock, python)).values():
        if one.file is None:
            raise UsageError(
                "no-wheel", f"no file of {one.package.pin} fits this Python", where=str(python.path)
            )
        rows.append((one.package, one.file))
    return tuple(rows)


def _target(lock: Lock, python: ChosenPython) -> Target:
    if python.machine not in lock.machines:
        raise EnvspecError(
            "machine-not-locked",
            f"the lock is for {' and '.join(lock.machines)}, this machine is {python.machine}",
            fix=f'add "{python.machine}" to resolve.machines and lock again',
        )
    return Target(python.version, python.machine)


def _needed(lock: Lock, target: Target) -> tuple[LockedPackage, ...]:
    environment = target_environment(target.python, target.machine)
    return tuple(package for package in lock.packages if package.needed_in(environment))


def _file(package: LockedPackage, places: Mapping[Tag, int]) -> LockedFile | None:
    best = best_wheel((file.filename for file in package.files), places)
    for file in package.files:
        if file.filename == best or (best is None and not file.is_wheel):
            return file
    return None
