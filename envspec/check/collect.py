"""Getting the facts of a set: from the lock at once, from its wheels by what is kept of them, else by ranged reads.

What a wheel holds never changes, so it is kept by the wheel's hash: of a lock that was checked before nothing is read again,
and no index is asked where its files lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from envspec.check.facts import CheckInput, Gpu, IndexNotices, Selection, ToolkitReleases
from envspec.check.locate import Located, kept_notices, locate
from envspec.check.requirements import selection_of, with_metadata
from envspec.data.toolkit_components import component_of
from envspec.lock.selection import Selected
from envspec.lock.targets import Target
from envspec.report.errors import EnvspecError, error_words
from envspec.report.rules import Missing
from envspec.uv.run import Uv
from envspec.wheels.access import IndexAccess, access_of
from envspec.wheels.cache import NotKept
from envspec.wheels.contents import read_all_contents
from envspec.wheels.file import ResolvedFile, SetContents
from envspec.wheels.metadata import WheelMetadata, fetch_metadata


class _Wheels(msgspec.Struct, frozen=True):
    """What the wheels of a set say and hold, by package name."""

    metadata: Mapping[str, WheelMetadata]
    contents: SetContents | Missing


def collect_facts(
    given: CheckInput,
    target: Target,
    uv: Uv,
    python: Path,
    on_progress: Callable[[str], None] = lambda text: None,
) -> dict[type, object]:
    """Return all facts that can be had, by type; what the network does not give is `Missing` with the reason."""
    selection = selection_of(given.lock, target)
    facts: dict[type, object] = {
        CheckInput: given,
        Gpu: Gpu(given.profile.gpu.arch, given.profile.gpu.minimum_driver),
        Selection: selection,
        ToolkitReleases: toolkit_releases(selection.chosen),
    }
    files = _wheel_files(selection)
    notices: IndexNotices | Missing | None = kept_notices(given, uv)
    access = access_of(given.profile, uv)
    wheels: _Wheels | Missing | None = _read_kept(files, access)
    if notices is None or wheels is None:
        on_progress("asking the index where the locked files lie")
        try:
            located = locate(given, uv, python)
            notices = located.notices
            wheels = wheels or _read(_addressed(files, located), access, on_progress, offline=uv.offline)
        except EnvspecError as error:
            missing = Missing(error_words(error))
            notices, wheels = notices or missing, wheels or missing
        except NotKept as gone:
            wheels = Missing(f"the index has no {gone} with the hash that is locked")
    facts[IndexNotices] = notices
    if isinstance(wheels, Missing):
        return facts | {SetContents: wheels}
    facts[Selection] = with_metadata(selection, given.profile, wheels.metadata)
    facts[SetContents] = wheels.contents
    return facts


def collect_selection(given: CheckInput, target: Target, uv: Uv, python: Path) -> Selection:
    """Return only what requires what, at which versions where the metadata can be had."""
    selection = selection_of(given.lock, target)
    files, access = _wheel_files(selection), access_of(given.profile, uv)
    try:
        try:
            metadata = _metadata(files, access, offline=uv.offline)
        except NotKept:
            addressed = _addressed(files, locate(given, uv, python))
            metadata = _metadata(addressed, access, offline=uv.offline)
    except (EnvspecError, NotKept):
        return selection
    return with_metadata(selection, given.profile, metadata)


def toolkit_releases(chosen: Mapping[str, Selected]) -> ToolkitReleases:
    """Return the toolkit's parts in a set."""
    offered: dict[str, list[Selected]] = {}
    for name, one in chosen.items():
        if component := component_of(name):
            offered.setdefault(component, []).append(one)
    compilers = offered.get("nvcc", [])
    major = max((one.version.major for one in compilers), default=None)
    # Of a part for two CUDA majors the one of the compiler's is laid out; the other one's headers no compiler looks at.
    found = {
        component: max(several, key=lambda one: (one.version.major == major, one.version))
        for component, several in offered.items()
    }
    return ToolkitReleases(
        {component: one.version for component, one in found.items()},
        {component: one.package.name for component, one in found.items()},
    )


def _wheel_files(selection: Selection) -> dict[str, ResolvedFile]:
    """Return the wheel of each selected package, without its address."""
    return {
        name: ResolvedFile(
            filename=one.file.filename,
            url="",
            sha256=one.file.sha256,
            size=one.file.size,
            uploaded=one.file.uploaded,
        )
        for name, one in selection.chosen.items()
        if one.file is not None and one.file.is_wheel
    }


def _addressed(files: Mapping[str, ResolvedFile], located: Located) -> dict[str, ResolvedFile]:
    """Return the files with their addresses, as far as the index has them."""
    there = located.files(files.values())
    return {name: there.get(file.sha256, file) for name, file in files.items()}


def _read_kept(files: Mapping[str, ResolvedFile], access: IndexAccess) -> _Wheels | None:
    try:
        metadata = _metadata(files, access, offline=True)
        return _Wheels(metadata, read_all_contents(files, metadata, access, offline=True))
    except NotKept:
        return None


def _read(
    files: Mapping[str, ResolvedFile],
    access: IndexAccess,
    on_progress: Callable[[str], None],
    *,
    offline: bool,
) -> _Wheels:
    on_progress(f"reading the metadata of {len(files)} wheels")
    metadata = _metadata(files, access, offline=offline)
    on_progress(f"reading the contents of {len(files)} wheels")
    return _Wheels(metadata, read_all_contents(files, metadata, access, offline=offline))


def _metadata(
    files: Mapping[str, ResolvedFile], access: IndexAccess, *, offline: bool
) -> dict[str, WheelMetadata]:
    found = fetch_metadata(files.values(), access, offline=offline)
    return {name: found[file.sha256] for name, file in files.items()}
