"""Making a lock: uv resolves, the toolkit release set is laid over, and the result is written in envspec's form."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envspec.data.toolkit_components import component_of
from envspec.lock.claims import verify_claims
from envspec.lock.dates import explain_date
from envspec.lock.graph import Graph, ResolvedPackage, parse_uv_lock, prune, with_hashes
from envspec.lock.model import Lock, LockedFile, LockedPackage, OverrideRecord
from envspec.lock.targets import canonical_marker, holds_somewhere, needed_on, serves
from envspec.lock.toolkit_set import (
    METAPACKAGE,
    ToolkitSet,
    contradictions,
    require_components,
    toolkit_requirement,
    toolkit_set,
)
from envspec.profile import Profile
from envspec.report.errors import UsageError
from envspec.uv.project import resolution_project
from envspec.uv.run import Uv
from envspec.wheels.access import access_of
from envspec.wheels.file import ResolvedFile
from envspec.wheels.metadata import WheelMetadata, fetch_metadata


class Resolution(msgspec.Struct, frozen=True):
    """Describes a new lock, the graph it was made from, and the metadata that was read on the way (by sha256)."""

    lock: Lock
    graph: Graph
    metadata: dict[str, WheelMetadata]


def resolve(
    profile: Profile,
    uv: Uv,
    python: Path,
    *,
    keep: Lock | None = None,
    upgrade: Sequence[str] | None = None,
    pins_win: Sequence[str] = (),
) -> Resolution:
    """Resolve a profile.

    The pins of the packages in `pins_win` override what other packages ask for: no set to install, but one to look at
    when there is no other, and to say what does not fit.

    `keep` is an older lock whose versions are preferred where they still fit. `upgrade` frees some of them: None
    frees none, an empty sequence all, names free those packages.
    """
    with tempfile.TemporaryDirectory(prefix="envspec-lock-") as work, _about(profile):
        toolkit = _read_toolkit_set(profile, uv, python, Path(work) / "toolkit")
        project = Path(work) / "profile"
        resolution_project(
            profile,
            _requirements(profile, toolkit),
            _overrides(profile, toolkit, pins_win),
            # A pin that is newer than the profile's date is looked at all the same: the verdict is about the pin.
            any_date=pins_win,
        ).write(project)
        if keep is not None and upgrade != []:
            (project / "uv.lock").write_text(_preferences(keep, profile), encoding="utf-8")
        try:
            uv.lock(project, python, upgrade)
        except UsageError as refusal:
            raise refusal if pins_win else explain_date(refusal, profile, uv, python) from None
        graph = prune(
            parse_uv_lock((project / "uv.lock").read_text(encoding="utf-8")),
            lambda marker: holds_somewhere(marker, profile.python.minors, profile.machines),
        )
        exported = uv.export(project, python)
    graph = with_hashes(graph)
    metadata = fetch_metadata(_relevant(graph, toolkit), access_of(profile, uv), offline=uv.offline)
    verify_claims(profile, graph, metadata)
    records = list(contradictions(toolkit, graph, metadata)) if toolkit else []
    records += [
        OverrideRecord(name=o.name, version=o.specifier.removeprefix("=="), reason=o.reason)
        for o in profile.overrides
    ]
    return Resolution(_lock(profile, graph, exported, records), graph, metadata)


@contextlib.contextmanager
def _about(profile: Profile) -> Iterator[None]:
    """What uv says is about this profile, which it does not know."""
    try:
        yield
    except UsageError as error:
        error.where = error.where or str(profile.path)
        raise


def _read_toolkit_set(profile: Profile, uv: Uv, python: Path, project: Path) -> ToolkitSet | None:
    requirement = toolkit_requirement(profile)
    if requirement is None:
        return None
    resolution_project(profile, [requirement]).write(project)
    try:
        uv.lock(project, python, None)
    except UsageError as error:
        if error.code not in ("no-such-version", "unsatisfiable"):
            raise
        dated = explain_date(error, profile, uv, python)
        if dated is not error:
            raise dated from None
        assert profile.cuda is not None
        raise UsageError(
            "toolkit-no-release",
            f"there is no CUDA toolkit release {profile.cuda.toolkit} with {', '.join(profile.cuda.components)}",
            where=f"{profile.path}: cuda.toolkit",
            why=error.why,
            fix="name a release of the package cuda-toolkit, such as 13.0.2 or 13.2.1",
        ) from None
    graph = with_hashes(parse_uv_lock((project / "uv.lock").read_text(encoding="utf-8")))
    meta = next((p for p in graph.packages if p.name == METAPACKAGE), None)
    read = fetch_metadata(meta.wheels[:1] if meta else (), access_of(profile, uv), offline=uv.offline)
    require_components(profile, {extra for metadata in read.values() for extra in metadata.extras})
    return toolkit_set(profile, graph)


def release_with(package: str, version: str, profile: Profile, uv: Uv, python: Path) -> str | None:
    """Return the newest CUDA toolkit release that holds a part at that very version; None if there is none."""
    component = component_of(package)
    with tempfile.TemporaryDirectory(prefix="envspec-toolkit-") as work:
        project = Path(work) / "toolkit"
        wanted = [f"{METAPACKAGE}[{component}]", f"{package}=={version}"]
        resolution_project(profile, wanted).write(project)
        try:
            uv.lock(project, python, None)
        except UsageError:
            return None
        graph = parse_uv_lock((project / "uv.lock").read_text(encoding="utf-8"))
    return next((p.version for p in graph.packages if p.name == METAPACKAGE), None)


def _requirements(profile: Profile, toolkit: ToolkitSet | None) -> list[str]:
    asked = [p.requirement for p in profile.packages]
    named = {p.name for p in profile.packages}
    return asked + [name for name, _ in toolkit.versions if name not in named] if toolkit else asked


def _overrides(profile: Profile, toolkit: ToolkitSet | None, pins_win: Sequence[str]) -> list[str]:
    pins = {p.name: p.requirement for p in profile.packages if p.name in pins_win}
    own = pins | {o.name: f"{o.name}{o.specifier}" for o in profile.overrides}
    set_ = {name: f"{name}=={version}" for name, version in toolkit.versions} if toolkit else {}
    return sorted((set_ | own).values())


def _preferences(lock: Lock, profile: Profile) -> str:
    """An older lock as the skeleton of a uv.lock: uv prefers its versions, and resolves everything else anew.

    The index named here does not exist on purpose: nothing may be fetched by what an old lock says.
    """
    lines = ["version = 1", "revision = 3", f"requires-python = {json.dumps(profile.python.versions)}"]
    for package in lock.packages:
        lines += [
            "[[package]]",
            f"name = {json.dumps(package.name)}",
            f"version = {json.dumps(package.version)}",
        ]
        lines.append('source = { registry = "https://index.invalid/simple" }')
    return "\n".join(lines) + "\n"


def _relevant(graph: Graph, toolkit: ToolkitSet | None) -> list[ResolvedFile]:
    """The wheels whose metadata says who asked for the toolkit release set, and what torch was built for."""
    members = {name for name, _ in toolkit.versions} if toolkit else set()
    return [
        package.wheels[0]
        for package in graph.packages
        if package.wheels and (package.name == "torch" or any(edge.to in members for edge in package.edges))
    ]


def _lock(profile: Profile, graph: Graph, exported: str, overrides: list[OverrideRecord]) -> Lock:
    markers = _markers(exported, profile)
    packages = []
    for package in graph.packages:
        marker = markers.get((package.name, package.version))
        if marker is None:
            continue  # needed only on machines that the profile does not name
        files = [f for f in package.wheels if serves(f.filename, profile.python.minors, profile.machines)]
        if package.name in profile.allow_sdists and package.sdist is not None:
            files.append(package.sdist)
        _require_coverage(profile, package, marker, files, graph)
        packages.append(
            LockedPackage(
                name=package.name,
                version=package.version,
                marker=marker,
                files=tuple(
                    LockedFile(f.filename, f.sha256, f.size, f.uploaded)
                    for f in sorted(files, key=lambda f: f.filename)
                ),
                via=_via(graph, package.name),
            )
        )
    return Lock(
        profile_name=profile.path.name,
        profile_digest=profile.lock_digest,
        python=profile.python.versions,
        machines=profile.machines,
        exclude_newer=profile.exclude_newer,
        overrides=tuple(sorted(overrides, key=lambda o: o.name)),
        packages=tuple(sorted(packages, key=lambda p: (p.name, p.version))),
    )


def _require_coverage(
    profile: Profile, package: ResolvedPackage, marker: str, files: Sequence[ResolvedFile], graph: Graph
) -> None:
    """The lock promises every Python minor and machine of the profile; a package without a file for one breaks it."""
    if package.sdist is not None and package.name in profile.allow_sdists:
        return
    lacking = [
        f"CPython {minor} on {machine}"
        for minor in profile.python.minors
        for machine in profile.machines
        if needed_on(marker, minor, machine)
        and not any(serves(f.filename, (minor,), (machine,)) for f in files)
    ]
    if lacking:
        raise UsageError(
            "no-wheel",
            f"{package.name} {package.version} has no wheel for {', '.join(lacking)}",
            where=f"{profile.path}: python.versions, resolve.machines",
            why="asked for by " + ", ".join(_via(graph, package.name)),
            fix="leave that Python or machine out of the profile, pin another version, or allow its sdist: "
            f'resolve.allow-sdists = ["{package.name}"]',
        )


def _via(graph: Graph, name: str) -> tuple[str, ...]:
    return tuple(sorted({p.name if p is not None else "profile" for p, _ in graph.requirers(name)}))


_EXPORTED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)(?: ; (.+))?")


def _markers(exported: str, profile: Profile) -> dict[tuple[str, str], str]:
    """The marker of each package, in the lock's canonical form."""
    found: dict[tuple[str, str], str] = {}
    for line in exported.splitlines():
        match = _EXPORTED.fullmatch(line.strip())
        if match:
            minors, machines = profile.python.minors, profile.machines
            if not match[3] or holds_somewhere(match[3], minors, machines):
                found[canonicalize_name(match[1]), match[2]] = canonical_marker(
                    match[3] or "", minors, machines
                )
    return found
