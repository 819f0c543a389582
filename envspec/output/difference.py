"""What differs between two generations, locks or profiles: packages, settings, toolkit, findings, size.

What one side cannot know is not compared: a lock knows no settings, a profile no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from envspec.lock import Lock, read_lock
from envspec.lock.selection import select
from envspec.lock.targets import Target
from envspec.output.generations import MANIFEST, Output
from envspec.output.manifest import Manifest, read_manifest
from envspec.profile import Profile, read_profile
from envspec.report.errors import UsageError

Change = tuple[str, str, str]
"""The name, the old and the new value; an empty one means absent."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one side of a comparison. None stands for what this side cannot know."""

    label: str
    packages: Mapping[str, str]
    lock: Lock | None = None
    """Where the packages are those of a lock, which serves several Pythons and machines."""
    target: Target | None = None
    """Where the packages are those of one Python on one machine."""
    settings: Mapping[str, str | None] | None = None
    toolkit: Mapping[str, str] | None = None
    """Packages of the toolkit by name, and its digest as CUDA_HOME."""
    findings: tuple[str, ...] | None = None
    files: Mapping[str, str] | None = None
    installed: int | None = None
    """Bytes of all files of a generation."""
    wheels: int | None = None
    """Bytes of the largest file of each package of a lock."""
    digest: str = ""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Says what differs between two environments. `version` is the version of the JSON form.

    Each change is (name, old, new); an empty side means absent.
    Sizes are in bytes: of all files, for two generations; of the wheels, for two locks; else 0.
    """

    version: int = 1
    a: str
    b: str
    packages: tuple[Change, ...]
    toolkit: tuple[Change, ...]
    settings: tuple[Change, ...]
    findings_gone: tuple[str, ...]
    findings_new: tuple[str, ...]
    size_a: int
    size_b: int
    files: int
    """Paths whose content differs, is gone or is new."""
    same_digest: bool


def snapshot_of(text: str, output: Output) -> Snapshot:
    """Read a generation number of `output`, a manifest, an output directory, a lock or a profile.

    Raises UsageError `diff-what`, and whatever reading that file raises.
    """
    path = Path(text)
    if text.isdecimal():
        manifest = output.generation(int(text)).manifest
        if not manifest.is_file():
            raise UsageError("diff-what", f"there is no generation {text}", where="--out")
        return _of_manifest(f"generation {text}", read_manifest(manifest))
    if (path / MANIFEST).is_file():
        return _of_manifest(text, read_manifest(path / MANIFEST))
    if path.suffix == ".json" and path.is_file():
        return _of_manifest(text, read_manifest(path))
    if path.suffix == ".toml" and path.is_file():
        profile = read_profile(path)
        lock = read_lock(profile.lock_path)
        if lock is not None:
            return _of_lock(text, lock, _profile_settings(profile))
    if path.suffix == ".lock":
        lock = read_lock(path)
        if lock is not None:
            return _of_lock(text, lock, None)
    raise UsageError(
        "diff-what",
        f"{text!r} is no generation, manifest, output directory, lock or profile with a lock",
        fix="name two of them, for example: envspec diff 1 2",
    )


def compare(a: Snapshot, b: Snapshot) -> Difference:
    """Return everything that differs, as far as both sides know it."""
    a, b = _narrowed(a, b.target), _narrowed(b, a.target)
    before, after = a.findings, b.findings
    both = before is not None and after is not None
    size_a, size_b = _sizes(a, b)
    return Difference(
        a=a.label,
        b=b.label,
        packages=_changes(a.packages, b.packages),
        settings=_changes(a.settings, b.settings),
        toolkit=_changes(a.toolkit, b.toolkit),
        findings_gone=tuple(f for f in before or () if both and f not in (after or ())),
        findings_new=tuple(f for f in after or () if both and f not in (before or ())),
        size_a=size_a,
        size_b=size_b,
        files=len(_changes(a.files, b.files)),
        same_digest=bool(a.digest) and a.digest == b.digest,
    )


def settings(
    *,
    arch: str,
    minimum_driver: str,
    memory_per_job: int,
    memory_headroom: int,
    variables: tuple[tuple[str, str], ...],
    precedence: tuple[str, ...] | None,
    python: str | None,
) -> dict[str, str | None]:
    """Return what was asked of an environment besides packages, by the profile's keys; None where it is not known."""
    return {
        "gpu.arch": arch,
        "gpu.minimum-driver": minimum_driver,
        "install.precedence": None if precedence is None else ", ".join(precedence),
        "jobs.memory-per-job": str(memory_per_job),
        "jobs.memory-headroom": str(memory_headroom),
        "python": python,
        **{f"environment.{name}": value for name, value in variables},
    }


def _profile_settings(profile: Profile) -> dict[str, str | None]:
    return settings(
        arch=profile.gpu.arch.dotted,
        minimum_driver=profile.gpu.minimum_driver,
        memory_per_job=profile.memory_per_job,
        memory_headroom=profile.memory_headroom,
        variables=profile.environment,
        precedence=profile.precedence,
        python=None,  # it prefers a minor; which patch release is used, the host decides
    )


def _of_manifest(label: str, manifest: Manifest) -> Snapshot:
    versions = {p.name: p.version for p in manifest.packages}
    return Snapshot(
        label=label,
        packages=versions,
        target=Target(manifest.inputs.python, manifest.inputs.machine),
        settings=settings(
            arch=manifest.arch,
            minimum_driver=manifest.minimum_driver,
            memory_per_job=manifest.script.memory_per_job,
            memory_headroom=manifest.script.memory_headroom,
            variables=manifest.script.variables,
            precedence=manifest.precedence,
            python=manifest.inputs.python,
        ),
        toolkit={
            "CUDA_HOME": manifest.script.toolchain,
            **{name: versions.get(name, "") for name in manifest.toolkit_packages},
        },
        findings=tuple(sorted(f"{f.severity.value}[{f.code}]: {f.message}" for f in manifest.findings)),
        files={row.path: row.sha256 or row.target for row in manifest.files if row.counted},
        installed=sum(row.size for row in manifest.files),
        digest=manifest.digest,
    )


def _of_lock(label: str, lock: Lock, asked: Mapping[str, str | None] | None) -> Snapshot:
    versions: dict[str, list[str]] = {}
    for package in lock.packages:
        versions.setdefault(package.name, []).append(package.version)
    return Snapshot(
        label=label,
        packages={name: ", ".join(sorted(found)) for name, found in versions.items()},
        lock=lock,
        settings=asked,
        wheels=sum(max((f.size for f in p.files), default=0) for p in lock.packages),
    )


def _narrowed(side: Snapshot, target: Target | None) -> Snapshot:
    """Return a side with only those packages of its lock that the other side's Python and machine need."""
    if side.lock is None or target is None:
        return side
    chosen = select(side.lock, target)
    return msgspec.structs.replace(
        side, packages={name: one.package.version for name, one in chosen.items()}, wheels=None
    )


def _sizes(a: Snapshot, b: Snapshot) -> tuple[int, int]:
    for before, after in ((a.installed, b.installed), (a.wheels, b.wheels)):
        if before is not None and after is not None:
            return before, after
    return 0, 0


def _changes(
    a: Mapping[str, str | None] | Mapping[str, str] | None,
    b: Mapping[str, str | None] | Mapping[str, str] | None,
) -> tuple[Change, ...]:
    """Return what differs between two tables; what either side does not know is left out."""
    if a is None or b is None:
        return ()
    pairs = ((name, a.get(name, ""), b.get(name, "")) for name in sorted({*a, *b}))
    return tuple(
        (name, old, new) for name, old, new in pairs if old is not None and new is not None and old != new
    )
