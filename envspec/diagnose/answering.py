"""The words of an answer: from a problem and the tables to what is shown."""

from __future__ import annotations

import re
import shlex

from envspec.diagnose.environment import EnvironmentFacts, relate
from envspec.diagnose.knowledge import Knowledge
from envspec.diagnose.problems import Misled, Problem
from envspec.diagnose.reading import Observed
from envspec.diagnose.values import Cause, Confidence, Misleading

MAX_MISLEADING = 24
_AGAIN_BY_HAND = (
    "Run the failing command again by hand and keep everything it prints: COMMAND 2>&1 | tee server.log"
)
_CONSEQUENCE = "Something failed, and this line is a consequence of it. The cause itself is not in this log. "
_CUT_OFF = (
    "The log ends inside a traceback: the exception itself was not written, or was cut off.",
    "Record the log again, completely and with both streams: COMMAND 2>&1 | tee server.log; with containers: docker logs NAME "
    "> server.log 2>&1",
)


class _Parts(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "it"


def cause_of(
    problem: Problem, confidence: Confidence, tables: Knowledge, facts: EnvironmentFacts | None
) -> Cause:
    """Return what is said of a problem: by its family, or by its kind if no family knows it."""
    if problem.family is not None:
        row = problem.family
        parts = _Parts(problem.parts)
        family, meaning, fix = row.id, row.meaning.format_map(parts), row.fix.format_map(parts)
        if facts is not None:
            meaning, fix = relate(row, meaning, fix, facts)
    else:
        default = tables.defaults[problem.kind]
        family, meaning, fix = default.family, default.meaning, default.fix
    return Cause(
        family=family,
        line=problem.line,
        text=problem.raw,
        meaning=_one_line(meaning),
        fix=_one_line(fix),
        confidence=confidence,
    )


def misleading_lines(observed: Observed, cause: Problem | None) -> tuple[Misleading, ...]:
    """Return the lines that would send a reader elsewhere, each sort once, in the order of the log."""
    family = cause.family.id if cause and cause.family else ""
    rows = [
        m for m in observed.misled if family not in m.row.true_for and not (cause and m.line == cause.line)
    ]
    rows.sort(key=lambda m: m.line)
    return tuple(Misleading(line=m.line, text=m.raw, why=_why(m)) for m in rows[:MAX_MISLEADING])


def lost_trail(observed: Observed, tables: Knowledge) -> Cause | None:
    """Return where the trail ends when a failure has left no cause in the log, or None if nothing failed."""
    failures = [m for m in observed.misled if m.row.failure and m.last > observed.ready]
    if failures:
        return _consequence(failures, observed, tables)
    begun = observed.unfinished
    if begun is None or begun.number <= observed.ready:
        return None
    meaning, fix = _CUT_OFF
    return Cause(
        family="log-cut-off", line=begun.number, text=begun.raw, meaning=meaning, fix=fix, confidence="low"
    )


def _consequence(failures: list[Misled], observed: Observed, tables: Knowledge) -> Cause:
    """The consequence that tells best how to see the cause; the table of misleading lines is in that order."""
    order = {row.id: place for place, row in enumerate(tables.misleading)}
    shown = min(failures, key=lambda m: (not m.row.show, order[m.row.id]))
    fix = shown.row.show or _AGAIN_BY_HAND
    if observed.build_command and "ninja" in fix:
        fix = f"Run: {_command(observed.build_command)}. {fix}"
    return Cause(
        family=shown.row.id,
        line=shown.line,
        text=shown.raw,
        meaning=_CONSEQUENCE + _one_line(shown.row.why),
        fix=_one_line(fix),
        confidence="low",
    )


def _why(misled: Misled) -> str:
    why = _one_line(misled.row.why)
    return f"{why} ({misled.count - 1} more such lines)" if misled.count > 1 else why


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _command(quoted: str) -> str:
    """A command line from the list that Python prints in CalledProcessError."""
    if not quoted.startswith("["):
        return quoted
    return shlex.join(re.findall(r"'([^']{0,400})'", quoted))
