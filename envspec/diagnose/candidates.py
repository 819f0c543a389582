"""From what was observed to the candidates: the problems that can be the cause.

A problem is none if the process survived it, or if it says too little. What a program tolerated becomes one if a later
failure misses just that. Nothing here knows a particular failure; what is particular comes from the tables.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from envspec.diagnose.kinds import Kind
from envspec.diagnose.phrases import pattern
from envspec.diagnose.problems import Problem
from envspec.diagnose.reading import Observed
from envspec.diagnose.scoring import Distance, Limit, Step, distance, limit, points

MAX_FAILURES = 200
"""So many failures are compared with what was tolerated."""
_SHORTEST_NAME = 4


class Candidate(msgspec.Struct, frozen=True):
    """Describes a problem that can be the cause, and its score when all of the log is known."""

    problem: Problem
    score: int


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """Holds all candidates in the order of the log. `alive`: the process works, and nothing has failed since it started."""

    found: tuple[Candidate, ...]
    alive: bool


def find_candidates(observed: Observed) -> Candidates:
    """Return the candidates of a log that has been read to its end."""
    failed_at = _last_failure(observed)
    problems = [p for p in observed.problems if not _is_survived(p, observed, failed_at)]
    alive = bool(
        observed.ready
        and observed.ready > failed_at
        and not observed.exits
        and all(p.tolerated or p.last < observed.ready for p in problems)
    )
    failures = [p for p in problems if not p.tolerated and p.score >= limit(Limit.CONSEQUENCE)][:MAX_FAILURES]
    scored = [Candidate(p, _score(p, failures)) for p in problems]
    found = [c for c in scored if _counts(c, failed_at) and not (alive and c.problem.last <= observed.ready)]
    return Candidates(found=tuple(found), alive=alive)


def _counts(candidate: Candidate, failed_at: int) -> bool:
    if candidate.score < limit(Limit.CANDIDATE):
        return False
    if failed_at:
        return True
    certain = candidate.problem.kind is Kind.MESSAGE or candidate.score >= limit(Limit.FAILURE)
    return certain and not candidate.problem.tolerated


def _last_failure(observed: Observed) -> int:
    """The last line that shows that something failed, 0 if nothing did."""
    lines = [m.last for m in observed.misled if m.row.failure]
    lines += [p.last for p in observed.problems if not p.tolerated and p.score >= limit(Limit.FAILURE)]
    if observed.unfinished is not None:
        lines.append(observed.unfinished.number)
    return max(lines, default=0)


def _is_survived(problem: Problem, observed: Observed, failed_at: int) -> bool:
    """Whether the program went on after the last time it said this.

    It did not if a process ended near the line: then what goes on later is another worker, or the next attempt.
    """
    exits = observed.exits
    place = bisect_left(exits, problem.line - distance(Distance.BEFORE_EXIT))
    if place < len(exits) and exits[place] <= problem.last + distance(Distance.UNTIL_EXIT):
        return False
    if observed.ready > problem.last:
        return True
    enough = distance(Distance.ALIVE)
    later = [line for line in observed.progress if line > problem.last]
    return len(later) >= enough and failed_at <= later[enough - 1] and problem.kind is not Kind.CRASH


def _score(problem: Problem, failures: Sequence[Problem]) -> int:
    """The problem's score; of what was tolerated, a little more than that of the failure that misses it."""
    if not problem.tolerated:
        return problem.score
    later = [f for f in failures if f.line > problem.line and _misses(f, problem)]
    if not later:
        return problem.score
    soon = min(f.line for f in later) - problem.last <= distance(Distance.MISSED_SOON)
    more = points(Step.MISSED_SOON if soon else Step.MISSED_LATER)
    return max(problem.score, max(f.score for f in later) + more)


def _misses(later: Problem, earlier: Problem) -> bool:
    """Whether the later failure is a consequence of what was tolerated earlier."""
    if later.family and earlier.family:
        follows = later.family.follows
        if earlier.family.id in (*follows, later.family.id) or f"kind:{earlier.kind.value}" in follows:
            return True
    if earlier.module and pattern("missing-piece").search(later.body):
        last = _letters(earlier.module.rsplit(".", 1)[-1])
        return len(last) >= _SHORTEST_NAME and last in _letters(later.body)
    return False


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
