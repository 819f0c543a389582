"""Getting the facts: from the lock at once, from wheel metadata and from the wheels' insides by ranged reads.

Everything read from the network is kept by the wheel's hash: a wheel never changes, so the second check of a lock reads
nothing. What is kept is written by envspec alone and read back through types; a damaged file is read anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envspec.check.facts import Ask, CheckInput, Gpu, IndexNotices, Selection, ToolkitReleases
from envspec.data.toolkit_components import component_of
from envspec.lock import Lock
from envspec.lock.graph import Graph, parse_uv_lock, with_hashes
from envspec.lock.selection import Selected, select
from envspec.lock.targets import Target, target_environment
from envspec.profile import Profile
from envspec.report.errors import EnvspecError, error_words
from envspec.report.rules import Missing
from envspec.uv.project import UvProject, sources_of
from envspec.uv.run import Uv
from envspec.wheels.cache import cache_dir, keep_bytes, read_bytes
from envspec.wheels.contents import look_into_all
from envspec.wheels.file import ResolvedFile, WheelLooks
from envspec.wheels.metadata import WheelMetadata, fetch_metadata


def gather(
    given: CheckInput,
    target: Target,
    uv: Uv,
    python: Path,
    on_progress: Callable[[str], None] = lambda t: None,
) -> dict[type, Any]:
    """All facts that can be had; what the network does not give is `Missing` with the reason."""
    profile, lock = given.profile, given.lock
    facts: dict[type, Any] = {
        CheckInput: given,
        Gpu: Gpu(profile.gpu.arch, profile.gpu.minimum_driver),
    }
    selected = select(lock, target)
    facts[Selection] = Selection(target=target, chosen=selected, asks=_asks_of_lock(lock, selected))
    facts[ToolkitReleases] = toolkit_releases(selected)
    try:
        on_progress("asking the index where the locked files lie")
        graph, notices = locate(profile, lock, uv, python)
        files = _files(graph, selected)
        on_progress(f"reading the metadata of {len(files)} wheels")
        metadata = fetch_metadata(files.values(), offline=uv.offline)
    except EnvspecError as error:
        missing = Missing(error_words(error))
        return facts | {WheelLooks: missing, IndexNotices: missing}
    by_name = {name: metadata[file.sha256] for name, file in files.items() if file.sha256 in metadata}
    facts[IndexNotices] = notices
    facts[Selection] = _with_asks(facts[Selection], profile, lock, by_name)
    on_progress(f"looking into {len(files)} wheels")
    facts[WheelLooks] = look_into_all(files, by_name, uv.offline)
    return facts


def gather_asks(profile: Profile, lock: Lock, target: Target, uv: Uv, python: Path) -> Selection:
    """Only who asks for what, with specifiers where metadata can be had."""
    selected = select(lock, target)
    selection = Selection(target=target, chosen=selected, asks=_asks_of_lock(lock, selected))
    try:
        graph, _ = locate(profile, lock, uv, python)
        files = _files(graph, selected)
        metadata = fetch_metadata(files.values(), offline=uv.offline)
    except EnvspecError:
        return selection
    by_name = {name: metadata[file.sha256] for name, file in files.items() if file.sha256 in metadata}
    return _with_asks(selection, profile, lock, by_name)


def _asks_of_lock(lock: Lock, selected: Mapping[str, Selected]) -> dict[str, tuple[Ask, ...]]:
    return {
        name: tuple(Ask("" if by == "profile" else by, "?") for by in one.package.via)
        for name, one in selected.items()
    }


def toolkit_releases(selected: Mapping[str, Selected]) -> ToolkitReleases:
    """The toolkit's parts in a set."""
    found = {component_of(name): one for name, one in selected.items() if component_of(name)}
    return ToolkitReleases(
        {str(c): one.version for c, one in found.items()},
        {str(c): one.package.name for c, one in found.items()},
    )


class _Located(msgspec.Struct):
    graph: Graph
    yanked: dict[str, str]


def locate(profile: Profile, lock: Lock, uv: Uv, python: Path) -> tuple[Graph, IndexNotices]:
    """Where the index has the locked files, and who asks for what: uv resolves the pins themselves.

    The pins are asked for and override what anybody asks for, so that the answer is the lock and nothing else, also for
    a lock whose versions contradict each other; finding that is what the rules are for.
    """
    kept = cache_dir() / "graph" / f"{lock.digest.removeprefix('sha256:')}.json"
    try:
        located = msgspec.json.decode(read_bytes(kept), type=_Located)
        return located.graph, IndexNotices(located.yanked)
    except (OSError, msgspec.DecodeError):
        pass
    with tempfile.TemporaryDirectory(prefix="envspec-check-") as work:
        project = Path(work) / "pins"
        _pins_project(profile, lock).write(project)
        messages = uv.lock(project, python, None)
        graph = with_hashes(parse_uv_lock((project / "uv.lock").read_text(encoding="utf-8")))
    yanked = _yanked(messages)
    keep_bytes(kept, msgspec.json.encode(_Located(graph, yanked)))
    return graph, IndexNotices(yanked)


def _pins_project(profile: Profile, lock: Lock) -> UvProject:
    pins = tuple(f"{p.pin} ; {p.marker}" if p.marker else p.pin for p in lock.packages)
    return UvProject(
        requires_python=lock.python,
        requirements=pins,
        overrides=pins,
        machines=lock.machines,
        indexes=profile.indexes,
        sources=sources_of(profile),
        allow_sdists=bool(profile.allow_sdists),
    )


def _yanked(messages: Iterable[str]) -> dict[str, str]:
    """uv warns: `warning: `x==1` is yanked (reason: "...")`."""
    found = {}
    for note in messages:
        if note.startswith("warning: `") and "is yanked" in note:
            pin, _, rest = note.removeprefix("warning: `").partition("`")
            found[pin] = rest.partition("is yanked")[2].strip(" ()")
    return found


def _files(graph: Graph, selected: Mapping[str, Selected]) -> dict[str, ResolvedFile]:
    """The remote file of each selected package, found by its hash: the same bytes, whatever the index says of them."""
    by_hash = {f.sha256: f for p in graph.packages for f in p.wheels}
    return {
        name: by_hash[one.file.sha256]
        for name, one in selected.items()
        if one.file is not None and one.file.sha256 in by_hash
    }


def _with_asks(
    selection: Selection, profile: Profile, lock: Lock, metadata: Mapping[str, WheelMetadata]
) -> Selection:
    """The selection with who asks for what at which versions, from the wheels' own metadata."""
    environment = target_environment(selection.target.python, selection.target.machine)
    asks: dict[str, list[Ask]] = {name: [] for name in selection.chosen}
    for name, one in selection.chosen.items():
        if "profile" in one.package.via:
            request = next((p for p in profile.packages if p.name == name), None)
            part = "part of cuda.toolkit" if request is None else ""
            asks[name].append(Ask("", request.specifier if request else part))
    extras = _active_extras(profile, metadata, environment)
    for name, wheel in metadata.items():
        for requirement in wheel.requirements():
            to = canonicalize_name(requirement.name)
            if to in asks:
                extra = _reason_extra(requirement, environment, extras.get(name, set()))
                if extra is not None:
                    asks[to].append(Ask(name, str(requirement.specifier), extra))
    chosen = {
        name: msgspec.structs.replace(one, requires_python=metadata[name].requires_python)
        if name in metadata
        else one
        for name, one in selection.chosen.items()
    }
    return Selection(
        target=selection.target, chosen=chosen, asks={n: tuple(dict.fromkeys(a)) for n, a in asks.items()}
    )


def _active_extras(
    profile: Profile, metadata: Mapping[str, WheelMetadata], environment: Mapping[str, str]
) -> dict[str, set[str]]:
    """Which extras of which package somebody asked for; grows until nothing more is added."""
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


def _reason_extra(requirement: Requirement, environment: Mapping[str, str], extras: set[str]) -> str | None:
    """The extra by which a requirement is in force, empty for an unconditional one, None if it is not in force."""
    for extra in ("", *sorted(extras)):
        if _holds(requirement.marker, environment, extra):
            return extra
    return None


def _holds(marker: Marker | None, environment: Mapping[str, str], extra: str) -> bool:
    return marker is None or marker.evaluate({**environment, "extra": extra})


__all__ = ["gather", "gather_asks", "locate", "toolkit_releases"]
