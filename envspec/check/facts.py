"""What rules are given: typed facts about a lock, its packages and the wheels' insides. No files, no network here."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envspec.data.architectures import Arch
from envspec.lock import Lock
from envspec.lock.selection import Selected
from envspec.lock.targets import Target
from envspec.profile import Profile
from envspec.report.errors import UsageError


class Ask(msgspec.Struct, frozen=True):
    """One package (empty: the profile) asks for another: `specifier` is empty where any version will do."""

    by: str
    specifier: str
    extra: str = ""


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


class CheckInput(msgspec.Struct, frozen=True):
    """What is checked: a profile and a lock for it.

    `kept_digest` is of the profile that the lock on disk was made from. `refusal` is why the resolver has no set for the
    profile, if so; the lock is then one in which the profile's pins win.
    """

    profile: Profile
    lock: Lock
    kept_digest: str = ""
    refusal: UsageError | None = None


class Gpu(msgspec.Struct, frozen=True):
    """The GPU and driver that the environment is for."""

    arch: Arch
    minimum_driver: str


class IndexNotices(msgspec.Struct, frozen=True):
    """What the index says of the locked files today: `yanked` maps a pin to the reason given."""

    yanked: Mapping[str, str]


def admits(specifier: str, version: Version) -> bool:
    """Whether a specifier admits a version, pre-releases included: the lock has decided on those."""
    return not specifier or SpecifierSet(specifier).contains(version, prereleases=True)
