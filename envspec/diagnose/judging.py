"""Which of the things that were seen is the cause.

The order: how telling a line is by its kind, whether the program tolerated it, whether it lived on afterwards, and
then simply which came first. Nothing here knows a particular failure; what is particular comes from the tables.
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left

from envspec.diagnose.environment import EnvironmentFacts, relate
from envspec.diagnose.evidence import Kind
from envspec.diagnose.knowledge import Knowledge
from envspec.diagnose.reading import Consequence, Group, Reading
from envspec.diagnose.values import Cause, Confidence, Diagnosis, Misleading

THRESHOLD = 30
"""Below this a line is not called a cause: a tolerated message, a repetition, an exception that was survived."""

SURE = 45
"""From here on a line that was not tolerated shows by itself that something failed."""

MAX_OTHERS = 5
MAX_MISLEADING = 24
MAX_LINKED = 200
LIFE = 8
"""So many signs of normal work after a message, and no failure after them, mean that it was survived."""

_NOT_INDEPENDENT = frozenset((Kind.CRASH, Kind.MESSAGE, Kind.PYTHON, Kind.COMMUNICATION))
_NEAR = 300
_SWALLOWED_NEAR = 60
_BEFORE_DEATH = 20
_UNTIL_DEATH = 400
_MISSING_PIECE = re.compile(
    r"has no SGLang implementation|Unrecognized|[Uu]nsupported|not supported|No module named|cannot import name|has no attribute"
    r"|is not defined|not registered|not found|Cannot find|could not find|does not exist|not available|KeyError|not callable"
)


def judge(reading: Reading, facts: EnvironmentFacts | None = None) -> Diagnosis:
    """The verdict on a log that has been read to its end."""
    tables = reading.knowledge
    failed_at = _last_failure(reading)
    groups = [g for g in reading.groups.values() if not _survived(g, reading, failed_at)]
    failures = [g for g in groups if not g.tolerated and g.score >= 40][:MAX_LINKED]
    for group in groups:
        if group.tolerated:
            _link_swallowed(group, failures)
    alive = bool(
        reading.ready
        and reading.ready > failed_at
        and not reading.deaths
        and all(g.tolerated or g.last < reading.ready for g in groups)
    )
    candidates = [g for g in groups if g.score >= THRESHOLD and (failed_at or not g.tolerated)]
    if not failed_at:
        candidates = [g for g in candidates if g.kind is Kind.MESSAGE or g.score >= SURE]
    if alive:
        candidates = [g for g in candidates if g.last > reading.ready]
    if candidates:
        best = min(candidates, key=lambda g: (-g.score, g.line))
        return Diagnosis(
            verdict="cause-found",
            cause=_cause(best, tables, facts),
            misleading=_misleading(reading, best),
            others=tuple(_cause(g, tables, facts) for g in _others(candidates, best)),
        )
    trail = _trail(reading)
    if trail is not None and not alive:
        return Diagnosis(verdict="cause-not-in-log", cause=trail, misleading=_misleading(reading, None))
    return Diagnosis(verdict="no-failure", cause=None)


def _last_failure(reading: Reading) -> int:
    """The last line that shows that something failed, 0 if nothing did."""
    lines = [c.last for c in reading.consequences.values() if c.row.failure]
    lines += [g.last for g in reading.groups.values() if not g.tolerated and g.score >= SURE]
    if reading.unfinished is not None:
        lines.append(reading.unfinished[0])
    return max(lines, default=0)


def _survived(group: Group, reading: Reading, failed_at: int) -> bool:
    """Whether the program went on after the last time it said this.

    It did not if something died near the line: then what goes on later is another worker, or the next attempt.
    """
    place = bisect_left(reading.deaths, group.line - _BEFORE_DEATH)
    if place < len(reading.deaths) and reading.deaths[place] <= group.last + _UNTIL_DEATH:
        return False
    if reading.ready > group.last:
        return True
    life = [line for line in reading.progress if line > group.last]
    return len(life) >= LIFE and failed_at <= life[LIFE - 1] and group.kind is not Kind.CRASH


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _link_swallowed(group: Group, failures: list[Group]) -> None:
    """Raise what was tolerated when a later failure is about the thing that was then missing."""
    later = [g for g in failures if g.line > group.line and _about(g, group)]
    if later:
        near = min(g.line for g in later) - group.last <= _SWALLOWED_NEAR
        group.score = max(group.score, max(g.score for g in later) + (4 if near else 2))


def _about(later: Group, earlier: Group) -> bool:
    """Whether the later failure is a consequence of what was tolerated earlier."""
    if later.family and earlier.family:
        follows = later.family.follows
        if earlier.family.id in (*follows, later.family.id) or f"kind:{earlier.kind.value}" in follows:
            return True
    if earlier.module and _MISSING_PIECE.search(later.body):
        last = _plain(earlier.module.rsplit(".", 1)[-1])
        return len(last) >= 4 and last in _plain(later.body)
    return False


def _others(candidates: list[Group], best: Group) -> list[Group]:
    """Problems that the cause does not explain: another family, another kind, away from the cascade of the first."""
    seen = {_family_id(best)}
    result = []
    for group in sorted(candidates, key=lambda g: g.line):
        cascade = group.kind is best.kind and abs(group.line - best.line) <= _NEAR
        if group is best or group.tolerated or cascade or group.score < 66 or group.kind in _NOT_INDEPENDENT:
            continue
        if _family_id(group) not in seen:
            seen.add(_family_id(group))
            result.append(group)
    return result[:MAX_OTHERS]


def _family_id(group: Group) -> str:
    return group.family.id if group.family else f"unknown-{group.kind.value}"


class _Parts(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "it"


def _cause(group: Group, tables: Knowledge, facts: EnvironmentFacts | None) -> Cause:
    if group.family is not None:
        row = group.family
        parts = _Parts(group.parts)
        family, meaning, fix = row.id, row.meaning.format_map(parts), row.fix.format_map(parts)
        if facts is not None:
            meaning, fix = relate(row, meaning, fix, facts)
    else:
        default = tables.defaults[group.kind]
        family, meaning, fix = default.family, default.meaning, default.fix
    return Cause(
        family=family,
        line=group.line,
        text=group.raw,
        meaning=" ".join(meaning.split()),
        fix=" ".join(fix.split()),
        confidence=_confidence(group),
    )


def _confidence(group: Group) -> Confidence:
    if group.score >= 70 and group.family is not None and not group.tolerated:
        return "high"
    if group.score >= 54:
        return "medium"
    return "low"


def _misleading(reading: Reading, cause: Group | None) -> tuple[Misleading, ...]:
    """The lines that would send a reader elsewhere, each sort once, in the order of the log."""
    family = cause.family.id if cause and cause.family else ""
    rows = [
        c
        for c in reading.consequences.values()
        if family not in c.row.true_for and not (cause and c.line == cause.line)
    ]
    rows.sort(key=lambda c: c.line)
    return tuple(Misleading(line=c.line, text=c.raw, why=_why(c)) for c in rows[:MAX_MISLEADING])


def _why(consequence: Consequence) -> str:
    why = " ".join(consequence.row.why.split())
    return f"{why} ({consequence.count - 1} more such lines)" if consequence.count > 1 else why


def _trail(reading: Reading) -> Cause | None:
    """Where the trail ends when a failure has left no cause in the log."""
    failures = [c for c in reading.consequences.values() if c.row.failure and c.last > reading.ready]
    unfinished = reading.unfinished if reading.unfinished and reading.unfinished[0] > reading.ready else None
    if not failures:
        if unfinished is None:
            return None
        return Cause(
            family="log-cut-off",
            line=unfinished[0],
            text=unfinished[1],
            meaning="The log ends inside a traceback: the exception itself was not written, or was cut off.",
            fix="Take the log again, whole, both streams: COMMAND 2>&1 | tee server.log; with containers: docker logs NAME "
            "> server.log 2>&1",
            confidence="low",
        )
    order = {row.id: place for place, row in enumerate(reading.knowledge.noise)}
    shown = min(failures, key=lambda c: (not c.row.show, order[c.row.id]))
    show = (
        shown.row.show
        or "Run the failing command again by hand and keep everything it prints: COMMAND 2>&1 | tee server.log"
    )
    command = _command(reading.commands[0]) if reading.commands else ""
    fix = f"Run: {command}. {show}" if command and "ninja" in show else show
    return Cause(
        family=shown.row.id,
        line=shown.line,
        text=shown.raw,
        meaning="Something failed, and this line is a consequence of it. The cause itself is not in this log. "
        + " ".join(shown.row.why.split()),
        fix=" ".join(fix.split()),
        confidence="low",
    )


def _command(quoted: str) -> str:
    """A command line from the list that Python prints in CalledProcessError."""
    if not quoted.startswith("["):
        return quoted
    return shlex.join(re.findall(r"'([^']{0,400})'", quoted))
