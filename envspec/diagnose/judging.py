"""From the candidates to the verdict: the one with the highest score is the cause, of several the first in the log."""

from __future__ import annotations

from envspec.diagnose.answering import cause_of, lost_trail, misleading_lines
from envspec.diagnose.candidates import Candidate, Candidates, find_candidates
from envspec.diagnose.environment import EnvironmentFacts
from envspec.diagnose.kinds import Kind
from envspec.diagnose.knowledge import Knowledge
from envspec.diagnose.reading import Observed
from envspec.diagnose.scoring import Distance, Limit, distance, limit
from envspec.diagnose.values import Confidence, Diagnosis

MAX_OTHERS = 5
_NOT_INDEPENDENT = frozenset((Kind.CRASH, Kind.MESSAGE, Kind.PYTHON, Kind.COMMUNICATION))


def judge(observed: Observed, tables: Knowledge, facts: EnvironmentFacts | None = None) -> Diagnosis:
    """Return the verdict on a log that has been read to its end."""
    candidates = find_candidates(observed)
    if candidates.found:
        best = min(candidates.found, key=lambda c: (-c.score, c.problem.line))
        return Diagnosis(
            verdict="cause-found",
            cause=cause_of(best.problem, _confidence(best), tables, facts),
            misleading=misleading_lines(observed, best.problem),
            others=tuple(
                cause_of(c.problem, _confidence(c), tables, facts) for c in _others(candidates, best)
            ),
        )
    trail = None if candidates.alive else lost_trail(observed, tables)
    if trail is not None:
        return Diagnosis(verdict="cause-not-in-log", cause=trail, misleading=misleading_lines(observed, None))
    return Diagnosis(verdict="no-failure", cause=None)


def _confidence(candidate: Candidate) -> Confidence:
    known = candidate.problem.family is not None and not candidate.problem.tolerated
    if known and candidate.score >= limit(Limit.HIGH):
        return "high"
    return "medium" if candidate.score >= limit(Limit.MEDIUM) else "low"


def _others(candidates: Candidates, best: Candidate) -> list[Candidate]:
    """Problems that the cause does not explain: another family, another kind, away from what follows from the cause."""
    seen = {best.problem.name}
    result = []
    for candidate in sorted(candidates.found, key=lambda c: c.problem.line):
        if _is_independent(candidate, best) and candidate.problem.name not in seen:
            seen.add(candidate.problem.name)
            result.append(candidate)
    return result[:MAX_OTHERS]


def _is_independent(candidate: Candidate, best: Candidate) -> bool:
    problem = candidate.problem
    if problem.tolerated or problem.kind in _NOT_INDEPENDENT or candidate.score < limit(Limit.INDEPENDENT):
        return False
    near = abs(problem.line - best.problem.line) <= distance(Distance.CASCADE)
    return problem is not best.problem and not (near and problem.kind is best.problem.kind)
