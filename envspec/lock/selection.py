"""What one interpreter needs of a lock: which packages, and which file of each."""

from __future__ import annotations

import msgspec
from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags
from packaging.version import Version

from envspec.host.python import ChosenPython
from envspec.lock import Lock, LockedFile, LockedPackage
from envspec.lock.targets import Target, target_environment
from envspec.report.errors import EnvspecError, UsageError


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """A locked package that the target needs, and the file an installer takes; None if there is none."""

    package: LockedPackage
    file: LockedFile | None
    requires_python: str = ""

    @property
    def version(self) -> Version:
        return Version(self.package.version)

    def __str__(self) -> str:
        return f"{self.package.name} {self.package.version}"


def target_tags(target: Target) -> list[Tag]:
    """The tags that an installer accepts on the target, best first. glibc is this host's: wheels run where they are built for."""
    version = tuple(int(n) for n in target.minor.split("."))
    platforms = list(platform_tags())
    if platforms and not platforms[0].endswith(target.machine):
        # Checked for another machine than this one: assume a current glibc.
        platforms = [f"manylinux_2_{n}_{target.machine}" for n in range(39, 16, -1)]
        platforms += [f"manylinux2014_{target.machine}", f"linux_{target.machine}"]
    return [*cpython_tags(version, platforms=platforms), *compatible_tags(version, platforms=platforms)]


def select(lock: Lock, target: Target) -> dict[str, Selected]:
    """What the target needs of a lock, with the file for its tags."""
    environment = target_environment(target.python, target.machine)
    tags = target_tags(target)
    return {
        p.name: Selected(package=p, file=p.file_for(tags)) for p in lock.packages if p.needed_in(environment)
    }


def needed_packages(lock: Lock, python: ChosenPython) -> tuple[LockedPackage, ...]:
    """The part of a lock that one interpreter needs. Raises EnvspecError `machine-not-locked`."""
    if python.machine not in lock.machines:
        raise EnvspecError(
            "machine-not-locked",
            f"the lock is for {' and '.join(lock.machines)}, this machine is {python.machine}",
            fix=f'add "{python.machine}" to resolve.machines and lock again',
        )
    environment = target_environment(python.version, python.machine)
    return tuple(p for p in lock.packages if p.needed_in(environment))


def needed_files(lock: Lock, python: ChosenPython) -> tuple[tuple[LockedPackage, LockedFile], ...]:
    """What one interpreter needs, each with the file that an installer takes. Raises UsageError `no-wheel`."""
    from packaging.tags import compatible_tags, cpython_tags, platform_tags

    platforms = list(platform_tags())
    version = tuple(int(n) for n in python.minor.split("."))
    tags = [*cpython_tags(version, platforms=platforms), *compatible_tags(version, platforms=platforms)]
    rows = []
    for package in needed_packages(lock, python):
        file = package.file_for(tags)
        if file is None:
            raise UsageError("no-wheel", f"no file of {package.pin} fits this Python", where=str(python.path))
        rows.append((package, file))
    return tuple(rows)
