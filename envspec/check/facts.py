"""What rules are given: typed facts about a lock, its packages and the wheels' insides. No files, no network here."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envspec.data.architectures import Arch
from envspec.data.compatibility import torch_cuda_packages
from envspec.lock import Lock
from envspec.lock.selection import Selected
from envspec.lock.targets import Target
from envspec.profile import Profile
from envspec.report.errors import UsageError


class RequiredBy(msgspec.Struct, frozen=True):
    """A package is required by another (`by`; empty: by the profile) at the versions of `specifier`.

    It is empty where any version will do, and "?" where it is not known. `extra` is the extra of `by` that requires it.
    """

    by: str
    specifier: str
    extra: str = ""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Holds everything that would be installed, and what requires it. Without a network `required_by` knows no specifiers."""

    target: Target
    chosen: Mapping[str, Selected]
    required_by: Mapping[str, tuple[RequiredBy, ...]]

    def version(self, name: str) -> Version | None:
        """Return the version of a package, None if it is not in the set."""
        found = self.chosen.get(name)
        return found.version if found else None

    def why(self, name: str) -> tuple[str, ...]:
        """Return the dependency path from a package to the profile, in one line, nearest first.

        `nvidia-nvvm 13.5.37 <- nvidia-cuda-nvcc 13.2.86 (any version) <- your profile`
        """
        return dependency_paths(self, name, 1)

    def torch_cuda(self) -> tuple[int, int] | None:
        """Return the CUDA release that the set's torch was built for, by what it pins; None if that is not known."""
        for name in torch_cuda_packages():
            for one in self.required_by.get(name, ()):
                if one.by == "torch" and one.specifier.startswith("=="):
                    release = Version(one.specifier.removeprefix("==").removesuffix(".*"))
                    return release.major, release.minor
        return None


def dependency_paths(selection: Selection, name: str, most: int) -> tuple[str, ...]:
    """Return up to `most` paths from a package to the profile, shortest first, one for each package that requires it."""
    found = selection.chosen.get(name)
    if found is None:
        return ()
    lines = []
    requirers = selection.required_by.get(name, ())
    nearest = sorted(requirers, key=lambda one: (len(_to_profile(selection, one.by)), one.by))
    for one in nearest[:most]:
        path = _to_profile(selection, one.by)
        lines.append(" <- ".join([str(found), f"{path[0]} ({_required(one)})", *path[1:]]))
    return tuple(lines) or (f"{found} <- ?",)


def _required(one: RequiredBy) -> str:
    extra = f" [{one.extra}]" if one.extra else ""
    version = {"": "any version", "?": "version not known"}.get(one.specifier, one.specifier)
    return f"{version}{extra}"


def _to_profile(selection: Selection, by: str) -> list[str]:
    """Return the shortest path from a requiring package to the profile, itself first."""
    if not by:
        return ["your profile"]
    parents: dict[str, str] = {by: ""}
    queue = [by]
    for current in queue:
        for one in selection.required_by.get(current, ()):
            if not one.by:
                steps = []
                at = current
                while at:
                    steps.append(str(selection.chosen[at]) if at in selection.chosen else at)
                    at = parents[at]
                return [*reversed(steps), "your profile"]
            if one.by not in parents:
                parents[one.by] = current
                queue.append(one.by)
    return [by]


class ToolkitReleases(msgspec.Struct, frozen=True):
    """Holds the parts of the CUDA toolkit in the set, by component name (`nvcc`, `crt`, `cudart`, ...), with their packages."""

    versions: Mapping[str, Version]
    packages: Mapping[str, str]

    def release(self, component: str) -> tuple[int, int] | None:
        """Return the CUDA release of a component as `(13, 2)`, or None if it is missing."""
        version = self.versions.get(component)
        return (version.major, version.minor) if version else None


class CheckInput(msgspec.Struct, frozen=True):
    """Says what is checked: a profile and a lock for it.

    `kept_digest` is of the profile that the lock on disk was made from. `refusal` is why the resolver has no set for the
    profile, if so; the lock is then one in which the profile's pins win.
    """

    profile: Profile
    lock: Lock
    kept_digest: str = ""
    refusal: UsageError | None = None


class Gpu(msgspec.Struct, frozen=True):
    """Holds the GPU and driver that the environment is for."""

    arch: Arch
    minimum_driver: str


class IndexNotices(msgspec.Struct, frozen=True):
    """Holds what the index tells of the locked files today: `yanked` maps a pin to the reason given."""

    yanked: Mapping[str, str]


def admits(specifier: str, version: Version) -> bool:
    """Return whether a specifier admits a version, pre-releases included: the lock has decided on those."""
    return not specifier or SpecifierSet(specifier).contains(version, prereleases=True)
