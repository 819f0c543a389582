"""What rules are given: typed facts about a lock, its packages and the wheels' insides. No files, no network here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envspec.archs import Arch
from envspec.lock import Lock, LockedFile, LockedPackage
from envspec.profile import Profile


class Target(msgspec.Struct, frozen=True):
    """What an environment is for: CPython `python` (`3.12` or `3.12.1`) on `machine`."""

    python: str
    machine: str

    @property
    def minor(self) -> str:
        """`3.12`."""
        return ".".join(self.python.split(".")[:2])


class Ask(msgspec.Struct, frozen=True):
    """One package (empty: the profile) asks for another: `specifier` is empty where any version will do."""

    by: str
    specifier: str
    extra: str = ""


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


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that would be installed, and who asked for what. Without a network `asks` know no specifiers."""

    target: Target
    chosen: Mapping[str, Selected]
    asks: Mapping[str, tuple[Ask, ...]]

    def version(self, name: str) -> Version | None:
        """The version of a package, None if it is not in the set."""
        found = self.chosen.get(name)
        return found.version if found else None

    def why(self, name: str) -> tuple[str, ...]:
        """The chain from a package to the profile, in one line, nearest first.

        `nvidia-nvvm 13.5.37 <- nvidia-cuda-nvcc 13.2.86 (any version) <- your profile`
        """
        return chains(self, name, 1)


def chains(selection: Selection, name: str, most: int) -> tuple[str, ...]:
    """Up to `most` chains from a package to the profile, shortest first, one for each package that asks for it."""
    found = selection.chosen.get(name)
    if found is None:
        return ()
    lines = []
    asks = sorted(selection.asks.get(name, ()), key=lambda ask: (len(_to_profile(selection, ask.by)), ask.by))
    for ask in asks[:most]:
        path = _to_profile(selection, ask.by)
        lines.append(" <- ".join([str(found), f"{path[0]} ({_asked(ask)})", *path[1:]]))
    return tuple(lines) or (f"{found} <- ?",)


def _asked(ask: Ask) -> str:
    extra = f" [{ask.extra}]" if ask.extra else ""
    version = {"": "any version", "?": "version not known"}.get(ask.specifier, ask.specifier)
    return f"{version}{extra}"


def _to_profile(selection: Selection, by: str) -> list[str]:
    """The shortest way from an asking package to the profile, itself first."""
    if not by:
        return ["your profile"]
    parents: dict[str, str] = {by: ""}
    queue = [by]
    for current in queue:
        for ask in selection.asks.get(current, ()):
            if not ask.by:
                steps = []
                at = current
                while at:
                    steps.append(str(selection.chosen[at]) if at in selection.chosen else at)
                    at = parents[at]
                return [*reversed(steps), "your profile"]
            if ask.by not in parents:
                parents[ask.by] = current
                queue.append(ask.by)
    return [by]


class ToolkitReleases(msgspec.Struct, frozen=True):
    """The parts of the CUDA toolkit in the set, by component name (`nvcc`, `crt`, `cudart`, ...), with their packages."""

    versions: Mapping[str, Version]
    packages: Mapping[str, str]

    def release(self, component: str) -> tuple[int, int] | None:
        """`(13, 2)`, or None if the component is missing."""
        version = self.versions.get(component)
        return (version.major, version.minor) if version else None


class WheelMember(msgspec.Struct, frozen=True, array_like=True):
    """A file of a wheel, as it will lie in site-packages."""

    path: str
    crc: int
    size: int


class Library(msgspec.Struct, frozen=True, array_like=True):
    """A shared library of a wheel: the torch and nvJitLink names it asks for. Names are mangled; `problem` if unreadable."""

    path: str
    torch_imports: tuple[str, ...] = ()
    jitlink_imports: tuple[str, ...] = ()
    jitlink_exports: tuple[str, ...] = ()
    problem: str = ""


class WheelLook(msgspec.Struct, frozen=True):
    """What a ranged read of one wheel told."""

    members: tuple[WheelMember, ...]
    libraries: tuple[Library, ...] = ()
    unread: int = 0
    """Libraries that were not looked into, since nothing pointed at torch."""
    sole_directory: str = ""
    """The one directory that all files lie in, of a wheel whose long list of files was not read; `members` is empty."""


class WheelLooks(msgspec.Struct, frozen=True):
    """The insides of the wheels, by package name."""

    by_package: Mapping[str, WheelLook]

    def libraries(self) -> Iterator[tuple[str, Library]]:
        """Every library with the package it belongs to."""
        for name, look in sorted(self.by_package.items()):
            for library in look.libraries:
                yield name, library


class Origin(msgspec.Struct, frozen=True):
    """The profile and the lock that is looked at. `kept_digest` is of the profile that the lock on disk was made from."""

    profile: Profile
    lock: Lock
    kept_digest: str = ""


class Gpu(msgspec.Struct, frozen=True):
    """The GPU and driver that the environment is for."""

    arch: Arch
    minimum_driver: str


class IndexNotices(msgspec.Struct, frozen=True):
    """What the index says of the locked files today: `yanked` maps a pin to the reason given."""

    yanked: Mapping[str, str]


class HostCompiler(msgspec.Struct, frozen=True):
    """The C++ compiler of this host: `family` is gcc or clang."""

    family: str
    version: tuple[int, int]
    path: str


class Missing(msgspec.Struct, frozen=True):
    """Facts that could not be had, and why."""

    why: str


def admits(specifier: str, version: Version) -> bool:
    """Whether a specifier admits a version, pre-releases included: the lock has decided on those."""
    return not specifier or SpecifierSet(specifier).contains(version, prereleases=True)
