"""The toolkit release set: the parts of one CUDA toolkit release, and the overrides they make necessary.

`cuda-toolkit` is NVIDIA's metapackage: its release 13.2.1 requires exactly the parts that were built and tested
together. torch pins the parts of another release, and `nvidia-cuda-nvcc` pins none of its own, so that a plain
resolution mixes up to three releases in one CUDA_HOME (measured: nvcc 13.2.86, crt and nvvm 13.5.37, headers 13.0.96).
The set is therefore asked for as a whole, and overrides whoever asks for another version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envspec.lock.graph import Graph, ResolvedPackage
from envspec.lock.model import OverrideRecord
from envspec.profile import Profile
from envspec.report.errors import UsageError
from envspec.wheels.metadata import WheelMetadata

METAPACKAGE = "cuda-toolkit"


class ToolkitSet(msgspec.Struct, frozen=True):
    """`versions` maps package name to version; `pinned_by_user` are members whose version the profile names itself."""

    release: str
    versions: tuple[tuple[str, str], ...]
    pinned_by_user: tuple[str, ...] = ()


def toolkit_requirement(profile: Profile) -> str | None:
    """Return the requirement from which uv resolves the set: `cuda-toolkit[crt,nvcc]==13.2.1`."""
    if profile.cuda is None:
        return None
    return f"{METAPACKAGE}[{','.join(sorted(profile.cuda.components))}]=={profile.cuda.toolkit}"


def toolkit_set(profile: Profile, graph: Graph) -> ToolkitSet:
    """Return the set from the resolution of `toolkit_requirement`; versions that the profile names itself replace its members."""
    assert profile.cuda is not None
    versions = {p.name: p.version for p in graph.packages if p.name != METAPACKAGE}
    by_user = []
    for package in profile.packages:
        if package.name in versions and package.specifier.startswith("==") and "*" not in package.specifier:
            versions[package.name] = package.specifier.removeprefix("==")
            by_user.append(package.name)
    return ToolkitSet(profile.cuda.toolkit, tuple(sorted(versions.items())), tuple(sorted(by_user)))


def require_components(profile: Profile, known: Collection[str]) -> None:
    """Refuse a component that this release does not have (`known`: the metapackage's extras); uv only warns of it.

    Raises UsageError `toolkit-no-component`.
    """
    assert profile.cuda is not None
    for component in profile.cuda.components:
        if component not in known:
            raise UsageError(
                "toolkit-no-component",
                f"CUDA toolkit {profile.cuda.toolkit} has no component {component!r}",
                where=f"{profile.path}: cuda.components",
                fix=f"it has {', '.join(sorted(set(known) - {'all'}))}",
            )


def contradictions(
    toolkit: ToolkitSet, graph: Graph, metadata: Mapping[str, WheelMetadata]
) -> tuple[OverrideRecord, ...]:
    """Return an override for each member that somebody asks for at another version, with the dependency path of each."""
    records = []
    for name, version in toolkit.versions:
        paths = tuple(_paths(name, version, graph, metadata))
        if paths:
            records.append(
                OverrideRecord(
                    name=name, version=version, reason=_reason(name, toolkit), dependency_paths=paths
                )
            )
    return tuple(records)


def _reason(name: str, toolkit: ToolkitSet) -> str:
    if name in toolkit.pinned_by_user:
        return "the profile names this version itself"
    return f"part of CUDA toolkit {toolkit.release}, whose parts only work together"


def _paths(name: str, version: str, graph: Graph, metadata: Mapping[str, WheelMetadata]) -> Iterable[str]:
    """`nvidia-cuda-runtime==13.0.96.* <- cuda-toolkit 13.0.2 [cudart] <- torch 2.11.0 <- your profile`."""
    seen = set()
    for package, _ in graph.requirers(name):
        if package is None:
            continue
        for requirement, extra in asked(package, name, metadata):
            if requirement.specifier.contains(version, prereleases=True):
                continue
            shown = f" [{extra}]" if extra else ""
            head = f"{name}{requirement.specifier} <- {package.name} {package.version}{shown}"
            if head not in seen:
                seen.add(head)
                yield " <- ".join([head, *path_to_profile(package.name, graph)])


def asked(
    package: ResolvedPackage, name: str, metadata: Mapping[str, WheelMetadata]
) -> Iterable[tuple[Requirement, str]]:
    """Return what a package's own metadata requires of `name`, each with its extra (empty if none)."""
    for wheel in package.wheels[:1]:
        for requirement in metadata[wheel.sha256].requirements() if wheel.sha256 in metadata else ():
            if canonicalize_name(requirement.name) == name:
                extras = [e.extra for e in package.edges if e.to == name and e.extra]
                wanted = [e for e in extras if requirement.marker and f'"{e}"' in str(requirement.marker)]
                if wanted or not (requirement.marker and "extra ==" in str(requirement.marker)):
                    yield requirement, wanted[0] if wanted else ""


def path_to_profile(name: str, graph: Graph) -> list[str]:
    """Return the shortest dependency path of a package, without the package itself: `[torch 2.11.0, your profile]`."""
    parents: dict[str, str | None] = {name: None}
    queue = [name]
    versions = {p.name: p.version for p in graph.packages}
    for current in queue:
        if current in graph.roots:
            steps: list[str] = []
            at: str | None = current
            while at is not None:
                steps.append(at)
                at = parents[at]
            return [f"{s} {versions[s]}" for s in reversed(steps[:-1])] + ["your profile"]
        for package, _ in graph.requirers(current):
            if package is not None and package.name not in parents:
                parents[package.name] = current
                queue.append(package.name)
    return ["your profile"]


__all__ = [
    "ToolkitSet",
    "asked",
    "contradictions",
    "path_to_profile",
    "require_components",
    "toolkit_requirement",
    "toolkit_set",
]
