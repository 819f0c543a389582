"""What requires what in a set: from the lock at once, and with versions from the metadata of its wheels."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envspec.check.facts import RequiredBy, Selection
from envspec.lock import Lock
from envspec.lock.selection import select
from envspec.lock.targets import Target, target_environment
from envspec.profile import Profile
from envspec.wheels.metadata import WheelMetadata


def selection_of(lock: Lock, target: Target) -> Selection:
    """Return what a target needs of a lock. Which versions a package requires of another a lock does not tell."""
    chosen = select(lock, target)
    required_by = {
        name: tuple(RequiredBy("" if by == "profile" else by, "?") for by in one.package.via)
        for name, one in chosen.items()
    }
    return Selection(target=target, chosen=chosen, required_by=required_by)


def with_metadata(selection: Selection, profile: Profile, metadata: Mapping[str, WheelMetadata]) -> Selection:
    """Return the selection with what the metadata of its wheels, by package name, requires at which versions."""
    environment = target_environment(selection.target.python, selection.target.machine)
    required_by: dict[str, list[RequiredBy]] = {name: [] for name in selection.chosen}
    for name, one in selection.chosen.items():
        if "profile" in one.package.via:
            request = next((p for p in profile.packages if p.name == name), None)
            part = "part of cuda.toolkit" if request is None else ""
            required_by[name].append(RequiredBy("", request.specifier if request else part))
    extras = _active_extras(profile, metadata, environment)
    for name, wheel in metadata.items():
        for requirement in wheel.requirements():
            to = canonicalize_name(requirement.name)
            if to in required_by:
                extra = _extra_of(requirement, environment, extras.get(name, set()))
                if extra is not None:
                    required_by[to].append(RequiredBy(name, str(requirement.specifier), extra))
    chosen = {
        name: msgspec.structs.replace(one, requires_python=metadata[name].requires_python)
        if name in metadata
        else one
        for name, one in selection.chosen.items()
    }
    return Selection(
        target=selection.target,
        chosen=chosen,
        required_by={name: tuple(dict.fromkeys(those)) for name, those in required_by.items()},
    )


def _active_extras(
    profile: Profile, metadata: Mapping[str, WheelMetadata], environment: Mapping[str, str]
) -> dict[str, set[str]]:
    """Return which extras of which package somebody asked for; grows until nothing more is added."""
    extras: dict[str, set[str]] = {p.name: set(p.extras) for p in profile.packages}
    queue = [(name, extra) for name in metadata for extra in ("", *extras.get(name, ()))]
    for name, extra in queue:
        for requirement in metadata[name].requirements() if name in metadata else ():
            if not requirement.extras or not _holds(requirement.marker, environment, extra):
                continue
            to = canonicalize_name(requirement.name)
            for wanted in sorted(canonicalize_name(e) for e in requirement.extras):
                if wanted not in extras.setdefault(to, set()):
                    extras[to].add(wanted)
                    queue.append((to, wanted))
    return extras


def _extra_of(requirement: Requirement, environment: Mapping[str, str], extras: set[str]) -> str | None:
    """Return the extra by which a requirement is in force, "" for an unconditional one, None if it is not in force."""
    for extra in ("", *sorted(extras)):
        if _holds(requirement.marker, environment, extra):
            return extra
    return None


def _holds(marker: Marker | None, environment: Mapping[str, str], extra: str) -> bool:
    return marker is None or marker.evaluate({**environment, "extra": extra})
