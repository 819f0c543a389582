"""What is known of the environment that a log comes from, and what it adds to a diagnosis.

`EnvironmentFacts` is what the rest of envspec can fill in.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from envspec.data.toolkit_components import component_of
from envspec.diagnose.knowledge import Family

_COMMANDS = {
    "rebuild": "A new build fixes this: envspec build PROFILE.",
    "repair": "envspec repair fixes this.",
    "check": "The pinned versions do not work together: run envspec check --fix PROFILE, then envspec build PROFILE.",
}
_NOT_THE_ENVIRONMENT = "Neither envspec repair, envspec check --fix nor a new build changes this."
_WAS_IT_INSIDE = (
    "This environment has the packages it was built with, so first make sure that the process runs inside it (source "
    "out/sglang_env.sh, or envspec run). If it does:"
)
_DRIFTED = "Files of this environment are not what was built (envspec verify lists them): run envspec repair. If it still fails:"
_WAS_INSIDE = "If a file is missing since the build (envspec verify shows it), run envspec repair. If not:"
_NOT_PACKAGES = ("toolkit", "driver", "gpu")
_TOOLKIT = {
    "nvcc": "nvcc",
    "nvvm": "ptxas and nvvm",
    "crt": "crt",
    "cudart": "runtime headers",
    "cccl": "cccl",
}
"""The components of the toolkit that have to be of one release, and how an answer names them."""


class EnvironmentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Holds facts about one environment; everything is optional, and what is empty is not talked about."""

    packages: Mapping[str, str] = {}
    """Distribution names in normal form and their versions."""
    driver: str = ""
    gpu_arch: str = ""
    built: Mapping[str, str] = {}
    """What the build installed, by distribution: what `packages` has otherwise was changed after it."""
    drifted: bool = False
    """Some file of the environment is not what was published."""
    inside: bool = False
    """The log is known to come from this environment."""

    @property
    def toolkit(self) -> dict[str, str]:
        """Return the parts of the CUDA toolkit that have to be of one release, and their versions."""
        versions = {component_of(name): version for name, version in self.packages.items()}
        return {named: versions[part] for part, named in _TOOLKIT.items() if part in versions}


def relate(family: Family, meaning: str, fix: str, facts: EnvironmentFacts) -> tuple[str, str]:
    """Add to meaning and fix what this environment has of the packages the family is about, and which command fixes it."""
    have = [f"your {name} is {facts.packages[name]}" for name in family.packages if name in facts.packages]
    missing = [
        f"{name} is not installed"
        for name in family.packages
        if facts.packages and name not in facts.packages and name not in _NOT_PACKAGES
    ]
    if "toolkit" in family.packages:
        have = [f"your {part} is {version}" for part, version in facts.toolkit.items()] + have
    if "driver" in family.packages and facts.driver:
        have.append(f"your driver is {facts.driver}")
    if "gpu" in family.packages and facts.gpu_arch:
        have.append(f"it is built for GPUs of architecture {facts.gpu_arch}")
    said = "; ".join(have + missing)
    if said:
        meaning = f"{meaning} In this environment: {said}."
    changed = _changed(family, facts)
    if changed:
        return (
            f"{meaning} Changed after the build: {'; '.join(changed)}.",
            f"{fix} {_COMMANDS['repair']}".strip(),
        )
    command = _COMMANDS.get(family.command, "")
    if not command and (facts.packages or facts.built):
        command = _NOT_THE_ENVIRONMENT
    elif facts.drifted:
        command = f"{_DRIFTED} {command}"
    elif family.command != "repair" and _as_built(facts):
        command = f"{_WAS_INSIDE if facts.inside else _WAS_IT_INSIDE} {command}"
    return meaning, f"{fix} {command}".strip()


def _as_built(facts: EnvironmentFacts) -> bool:
    return bool(facts.built) and all(facts.packages.get(name) == was for name, was in facts.built.items())


def _changed(family: Family, facts: EnvironmentFacts) -> list[str]:
    """The packages of the family that are not what the build installed: somebody else's pip was here."""
    if not facts.built or not facts.packages:
        return []
    names = set(family.packages)
    if "toolkit" in names:
        names |= {name for name in {*facts.built, *facts.packages} if component_of(name) in _TOOLKIT}
    changed = []
    for name in sorted(names & {*facts.built, *facts.packages}):
        was, now = facts.built.get(name), facts.packages.get(name)
        if was is not None and was != now:
            changed.append(f"{name} was {was}, is {now}" if now else f"{name} {was} is gone")
    return changed
