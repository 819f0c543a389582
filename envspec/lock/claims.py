"""Claims of a profile about the build of a package: `torch = "2.11.0+cu130"` names the CUDA release of the build.

The index's version often lacks the label; what the wheel's metadata pins tells it then.
"""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envspec.data.compatibility import torch_cuda_packages
from envspec.lock.graph import Graph, ResolvedPackage
from envspec.profile import Profile
from envspec.report.errors import UsageError
from envspec.wheels.metadata import WheelMetadata


def verify_claims(profile: Profile, graph: Graph, metadata: dict[str, WheelMetadata]) -> None:
    """Refuse a label of the profile that is not true of what was resolved. Raises UsageError `local-label-claim`."""
    for request in profile.packages:
        if not request.local:
            continue
        for package in graph.packages:
            if package.name == request.name:
                actual = _local_label(package, metadata)
                if actual != request.local:
                    raise UsageError(
                        "local-label-claim",
                        f"{package.name} {package.version} of this index is "
                        + (
                            f"a {actual} build, not {request.local}"
                            if actual
                            else f"not known to be a {request.local} build"
                        ),
                        where=f"{profile.path}: packages.{request.name}",
                        why=_evidence(package, metadata),
                        fix=f'write "{package.version}+{actual}"'
                        if actual
                        else f'write "{package.version}" without the label',
                    )


def _local_label(package: ResolvedPackage, metadata: dict[str, WheelMetadata]) -> str:
    """Return the label in the version, else the CUDA release that the package's own metadata pins: `cu130`."""
    if "+" in package.version:
        return package.version.split("+", 1)[1]
    for requirement in _cuda_pins(package, metadata):
        match = re.search(r"==(\d+)\.(\d+)", str(requirement.specifier))
        if match:
            return f"cu{match[1]}{match[2]}"
    return ""


def _cuda_pins(package: ResolvedPackage, metadata: dict[str, WheelMetadata]) -> list[Requirement]:
    """Return the requirements by which a torch wheel tells for which CUDA release it was built."""
    read = [metadata[wheel.sha256] for wheel in package.wheels[:1] if wheel.sha256 in metadata]
    return [
        r for one in read for r in one.requirements() if canonicalize_name(r.name) in torch_cuda_packages()
    ]


def _evidence(package: ResolvedPackage, metadata: dict[str, WheelMetadata]) -> str:
    pins = [str(r) for r in _cuda_pins(package, metadata)]
    return f"its metadata requires {pins[0]}" if pins else "its metadata names no CUDA release"
