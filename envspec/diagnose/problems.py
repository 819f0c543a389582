"""Problems: the same evidence on several lines is one problem, with its first line and its last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from envspec.diagnose.evidence import Evidence
from envspec.diagnose.kinds import Kind
from envspec.diagnose.knowledge import Family, MisleadingLine

MAX_PROBLEMS = 3000
_KEY = 200
_DIGITS = re.compile(r"0x[0-9a-fA-F]+|\d+")
_IGNORED_MODULE = re.compile(
    r"(?i)(?:ignor\w* import error|failed to import|could not import|error (?:when|while) (?:loading|importing))\W+(?:when |"
    r"while |from )?(?:loading |importing )?(?P<module>[\w.]+)"
)


class Problem(msgspec.Struct, kw_only=True):
    """Describes one problem as the log shows it. `score` and `last` change while the log is read.

    `module` is the Python module that the first line says could not be imported.
    """

    kind: Kind
    family: Family | None
    parts: Mapping[str, str]
    line: int
    raw: str
    body: str
    score: int
    tolerated: bool
    last: int
    lookup: bool
    module: str

    @property
    def name(self) -> str:
        """Return the name of the family, or of the kind if no family knows it."""
        return self.family.id if self.family else f"unknown-{self.kind.value}"


class Misled(msgspec.Struct):
    """Holds the misleading lines of one sort: the first of them, the last, and how many there are."""

    row: MisleadingLine
    line: int
    raw: str
    last: int
    count: int = 1


class Problems:
    """Holds all problems of a log, in its order; more than MAX_PROBLEMS are not kept."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[object, ...], Problem] = {}

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._by_key.values())

    def add(self, evidence: Evidence, score: int, *, tolerated: bool) -> Problem | None:
        """Add evidence to the problem that it repeats, or as a new one; None if there are too many."""
        line, family = evidence.line, evidence.family
        shape = _DIGITS.sub("#", line.body.strip())[:_KEY]
        key = (evidence.kind, family.id if family else "", tolerated, shape)
        known = self._by_key.get(key)
        if known is not None:
            known.last, known.score = line.number, max(known.score, score)
            return known
        if len(self._by_key) >= MAX_PROBLEMS:
            return None
        found = _IGNORED_MODULE.search(line.body)
        problem = self._by_key[key] = Problem(
            kind=evidence.kind,
            family=family,
            parts=evidence.parts,
            line=line.number,
            raw=line.raw,
            body=line.body,
            score=score,
            tolerated=tolerated,
            last=line.number,
            lookup=evidence.lookup,
            module=found["module"] if found else "",
        )
        return problem
