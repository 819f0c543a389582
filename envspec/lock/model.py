"""The frozen values of a lock."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from packaging.markers import Marker

if TYPE_CHECKING:
    from collections.abc import Mapping


class LockedFile(msgspec.Struct, frozen=True):
    """Describes one wheel (or sdist). `size` in bytes and `uploaded` (RFC 3339) are 0 and empty where the index does not tell."""

    filename: str
    sha256: str
    size: int = 0
    uploaded: str = ""

    @property
    def is_wheel(self) -> bool:
        """Tell whether the file is a wheel, and not an sdist."""
        return self.filename.endswith(".whl")


class LockedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one package at one version. `marker` is empty where every target needs it; `via` names who asked."""

    name: str
    version: str
    marker: str
    files: tuple[LockedFile, ...]
    via: tuple[str, ...] = ()

    @property
    def pin(self) -> str:
        """Return the exact requirement: `torch==2.11.0`."""
        return f"{self.name}=={self.version}"

    def needed_in(self, environment: Mapping[str, str]) -> bool:
        """Tell whether the marker holds in an environment (the variables of PEP 508)."""
        return not self.marker or Marker(self.marker).evaluate(dict(environment))


class OverrideRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a version that wins over what packages ask for, why, and who asked for another one."""

    name: str
    version: str
    reason: str
    dependency_paths: tuple[str, ...] = ()


class Lock(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Holds everything a lock file says."""

    profile_name: str
    profile_digest: str
    python: str
    machines: tuple[str, ...]
    exclude_newer: str
    overrides: tuple[OverrideRecord, ...]
    packages: tuple[LockedPackage, ...]

    def named(self, name: str) -> tuple[LockedPackage, ...]:
        """Return every locked version of a package: usually one, more where Pythons or machines differ."""
        return tuple(p for p in self.packages if p.name == name)

    @cached_property
    def digest(self) -> str:
        """Return the digest of what gets installed, with `sha256:` before it: pins, markers and hashes; comments do not count."""
        rows = [(p.pin, p.marker, sorted(f.sha256 for f in p.files)) for p in self.packages]
        return "sha256:" + hashlib.sha256(msgspec.json.encode(rows)).hexdigest()


class LockChange(msgspec.Struct, frozen=True):
    """Describes one line of a difference between two locks; an empty side means absent."""

    name: str
    old: str
    new: str

    def __str__(self) -> str:
        if not self.old:
            return f"+ {self.name} {self.new}"
        if not self.new:
            return f"- {self.name} {self.old}"
        return f"~ {self.name} {self.old} -> {self.new}"


def compare(old: Lock, new: Lock) -> tuple[LockChange, ...]:
    """Return what changed from one lock to another, by package."""

    def versions(lock: Lock) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for package in lock.packages:
            found.setdefault(package.name, []).append(package.version)
        return {name: ", ".join(sorted(v)) for name, v in found.items()}

    before, after = versions(old), versions(new)
    return tuple(
        LockChange(name, before.get(name, ""), after.get(name, ""))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )
