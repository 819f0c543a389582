"""What only the index can tell of a lock: at which addresses its files lie, and which of its releases were yanked.

Neither is a property of the files. Addresses differ from mirror to mirror and are asked for whenever one is needed; which
releases are yanked is asked again after an hour. uv answers both, so that mirrors, credentials and its cache are the user's.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from envspec.check.facts import CheckInput, IndexNotices
from envspec.lock.graph import Graph, parse_uv_lock, with_hashes
from envspec.uv.project import UvProject, sources_of
from envspec.uv.run import Uv
from envspec.wheels.access import INDEX_VARIABLES
from envspec.wheels.cache import cache_dir, keep_bytes, read_bytes
from envspec.wheels.file import ResolvedFile

_FRESH_SECONDS = 3600
# The variables by which a user of uv names other indexes; what a uv.toml says is seen when the hour is over.


class Located(msgspec.Struct, frozen=True):
    """Holds the answer of the index: its files for the packages of a lock, and its notices."""

    graph: Graph
    notices: IndexNotices

    def files(self, wanted: Iterable[ResolvedFile]) -> Mapping[str, ResolvedFile]:
        """Return the wanted files with their addresses, by sha256: the same bytes, whatever the index says of them.

        One that the index does not have is left out. Raises what reading a directory of wheels raises.
        """
        hashes = {file.sha256 for file in wanted}
        names = {file.filename for file in wanted}
        packages = [
            msgspec.structs.replace(p, wheels=tuple(f for f in p.wheels if f.filename in names), sdist=None)
            for p in self.graph.packages
        ]
        graph = with_hashes(Graph(tuple(packages), self.graph.roots))
        return {f.sha256: f for p in graph.packages for f in p.wheels if f.sha256 in hashes}


def locate(given: CheckInput, uv: Uv, python: Path) -> Located:
    """Ask the index, and keep what it says of yanked releases. Raises what uv's failures mean.

    uv resolves the pins themselves: they are asked for and override what anybody asks for, so that the answer is the
    lock and nothing else, also for a lock whose versions contradict each other; finding that is what the rules are for.
    """
    with tempfile.TemporaryDirectory(prefix="envspec-check-") as work:
        project = Path(work) / "pins"
        _pins_project(given).write(project)
        messages = uv.lock(project, python, None)
        graph = parse_uv_lock((project / "uv.lock").read_text(encoding="utf-8"))
    notices = IndexNotices(_yanked(messages))
    keep_bytes(_notices_path(given, uv), msgspec.json.encode(notices))
    return Located(graph, notices)


def kept_notices(given: CheckInput, uv: Uv) -> IndexNotices | None:
    """Return what the same index said within the last hour (offline: ever); None if it has to be asked."""
    path = _notices_path(given, uv)
    try:
        age = time.time() - path.stat().st_mtime
        if uv.offline or 0 <= age < _FRESH_SECONDS:
            return msgspec.json.decode(read_bytes(path), type=IndexNotices)
    except (OSError, msgspec.DecodeError):
        pass
    return None


def _notices_path(given: CheckInput, uv: Uv) -> Path:
    """Return the cache's file for what one index says of one lock."""
    asked = (
        given.lock.digest,
        given.profile.indexes,
        sources_of(given.profile),
        [uv.env.get(name, "") for name in INDEX_VARIABLES],
    )
    return cache_dir() / "notices" / f"{hashlib.sha256(msgspec.json.encode(asked)).hexdigest()}.json"


def _pins_project(given: CheckInput) -> UvProject:
    profile, lock = given.profile, given.lock
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
