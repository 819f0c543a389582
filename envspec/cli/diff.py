"""What differs between two generations, locks or profiles: packages, toolkit, findings, size."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envspec.lock import read_lock
from envspec.output.generations import MANIFEST, Output
from envspec.output.manifest import Manifest, read_manifest
from envspec.profile import Profile, read_profile
from envspec.report.errors import UsageError


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison; what a lock cannot know is empty."""

    label: str
    packages: dict[str, str]
    toolchain: str = ""
    toolkit: dict[str, str] = {}
    findings: tuple[str, ...] = ()
    size: int = 0
    """Bytes of all files, of a generation; of the wheels for one target, of a lock."""
    digest: str = ""
    files: dict[str, str] = {}
    settings: dict[str, str] = {}
    """What was asked of the environment besides packages: GPU, driver, winners, variables."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """`version` is the version of the JSON form. Each change is (name, old, new); an empty side means absent."""

    version: int = 1
    a: str
    b: str
    packages: tuple[tuple[str, str, str], ...]
    toolkit: tuple[tuple[str, str, str], ...]
    settings: tuple[tuple[str, str, str], ...]
    findings_gone: tuple[str, ...]
    findings_new: tuple[str, ...]
    size_a: int
    size_b: int
    files: int
    """Paths whose content differs, is gone or is new."""
    same_digest: bool


def side_of(text: str, output: Output | None) -> Side:
    """A generation number of `output`, a manifest, an output directory, a lock or a profile.

    Raises UsageError `diff-what`.
    """
    path = Path(text)
    if text.isdecimal():
        if output is None or not output.generation(int(text)).manifest.is_file():
            raise UsageError("diff-what", f"there is no generation {text}", where="--out")
        return _of_manifest(f"generation {text}", read_manifest(output.generation(int(text)).manifest))
    if (path / MANIFEST).is_file():
        return _of_manifest(text, read_manifest(path / MANIFEST))
    if path.suffix == ".json" and path.is_file():
        return _of_manifest(text, read_manifest(path))
    if path.suffix == ".toml" and path.is_file():
        profile = read_profile(path)
        if profile.lock_path.is_file():
            locked = _of_lock(text, profile.lock_path)
            return msgspec.structs.replace(locked, settings=_settings_of_profile(profile))
    if path.suffix == ".lock" and path.is_file():
        return _of_lock(text, path)
    raise UsageError(
        "diff-what",
        f"{text!r} is no generation, manifest, output directory, lock or profile with a lock",
        fix="name two of them, for example: envspec diff 1 2",
    )


def _of_manifest(label: str, manifest: Manifest) -> Side:
    versions = {p.name: p.version for p in manifest.packages}
    return Side(
        label=label,
        packages=versions,
        toolchain=manifest.script.toolchain,
        toolkit={name: versions.get(name, "") for name in manifest.toolkit_packages},
        findings=tuple(sorted(f"{f.severity.value}[{f.code}]: {f.message}" for f in manifest.findings)),
        size=sum(row.size for row in manifest.files),
        digest=manifest.digest,
        settings=_settings_of(manifest),
        files={row.path: row.sha256 or row.target for row in manifest.files if row.counted},
    )


def _settings_of(manifest: Manifest) -> dict[str, str]:
    script = manifest.script
    return {
        "gpu.arch": manifest.arch,
        "gpu.minimum-driver": manifest.minimum_driver,
        "jobs.memory-per-job": str(script.memory_per_job),
        "python": manifest.inputs.python,
        **{f"environment.{name}": value for name, value in script.variables},
    }


def _settings_of_profile(profile: Profile) -> dict[str, str]:
    return {
        "gpu.arch": profile.gpu.arch.dotted,
        "gpu.minimum-driver": profile.gpu.minimum_driver,
        "jobs.memory-per-job": str(profile.memory_per_job),
        "install.precedence": ", ".join(profile.precedence),
        **{f"environment.{name}": value for name, value in profile.environment},
    }


def _of_lock(label: str, path: Path) -> Side:
    lock = read_lock(path)
    assert lock is not None
    versions: dict[str, list[str]] = {}
    for package in lock.packages:
        versions.setdefault(package.name, []).append(package.version)
    return Side(
        label=label,
        packages={name: ", ".join(sorted(v)) for name, v in versions.items()},
        size=sum(max((f.size for f in p.files), default=0) for p in lock.packages),
    )


def compare(a: Side, b: Side) -> Difference:
    """Everything that differs."""
    return Difference(
        a=a.label,
        b=b.label,
        packages=_changes(a.packages, b.packages),
        settings=_changes(a.settings, b.settings) if a.settings and b.settings else (),
        toolkit=_changes({"CUDA_HOME": a.toolchain, **a.toolkit}, {"CUDA_HOME": b.toolchain, **b.toolkit}),
        findings_gone=tuple(f for f in a.findings if f not in b.findings),
        findings_new=tuple(f for f in b.findings if f not in a.findings),
        size_a=a.size,
        size_b=b.size,
        files=len(_changes(a.files, b.files)) if a.files and b.files else 0,
        same_digest=bool(a.digest) and a.digest == b.digest,
    )


def _changes(a: dict[str, str], b: dict[str, str]) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (name, a.get(name, ""), b.get(name, ""))
        for name in sorted(a.keys() | b.keys())
        if a.get(name, "") != b.get(name, "")
    )


def render(found: Difference) -> list[str]:
    """The difference as lines."""
    lines = [f"{found.a} -> {found.b}"]
    lines += [_line(*change) for change in found.packages]
    lines += [_line(*change) for change in found.settings]
    lines += [f"toolkit: {_line(*change).strip()}" for change in found.toolkit if change[0] == "CUDA_HOME"]
    lines += [f"gone: {text}" for text in found.findings_gone]
    lines += [f"new:  {text}" for text in found.findings_new]
    if found.files:
        lines.append(f"{found.files} files differ")
    if f"{found.size_a / 1e6:.1f}" != f"{found.size_b / 1e6:.1f}":
        lines.append(f"size: {found.size_a / 1e6:.1f} MB -> {found.size_b / 1e6:.1f} MB")
    if len(lines) == 1:
        lines.append("the same environment" if found.same_digest else "no difference in what is compared")
    return lines


def _line(name: str, old: str, new: str) -> str:
    if not old:
        return f"  + {name} {new}"
    return f"  - {name} {old}" if not new else f"  ~ {name} {old} -> {new}"
