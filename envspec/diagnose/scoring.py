"""The scores of evidence: `data/scores.toml`, which holds each number together with its reason."""

from __future__ import annotations

from enum import Enum
from functools import cache
from pathlib import Path

import msgspec

from envspec.data import load_file
from envspec.diagnose.evidence import Evidence
from envspec.diagnose.kinds import Kind


class Step(str, Enum):
    """Says what makes a line more or less telling than others of its kind."""

    FAMILY_KNOWN = "family-known"
    TOLERATED = "tolerated"
    CHAINED = "chained"
    CAUSED_BY = "caused-by"
    QUOTED = "quoted"
    QUOTED_IN_FREE_WORDS = "quoted-in-free-words"
    NO_MESSAGE = "no-message"
    OUTSIDE_TRACEBACK = "outside-traceback"
    UNKNOWN_WORD = "unknown-word"
    ASSERTION = "assertion"
    RUST_ERROR = "rust-error"
    WORDED_ERROR = "worded-error"
    TOOL_FAILED = "tool-failed"
    CMAKE_FRAME = "cmake-frame"
    UV_HEADLINE = "uv-headline"
    MISSED_LATER = "missed-later"
    MISSED_SOON = "missed-soon"


class Limit(str, Enum):
    """Names the scores with which a score is compared."""

    CANDIDATE = "candidate"
    FAILURE = "failure"
    CONSEQUENCE = "consequence"
    STRONG_ROOT = "strong-root"
    INDEPENDENT = "independent"
    MEDIUM = "medium"
    HIGH = "high"


class Distance(str, Enum):
    """Says how far apart two things may be: lines, links of a chain, progress markers."""

    CAUSED_BY = "caused-by"
    ALIVE = "alive"
    CASCADE = "cascade"
    MISSED_SOON = "missed-soon"
    BEFORE_EXIT = "before-exit"
    UNTIL_EXIT = "until-exit"


class Number(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Describes one number of the table, and why it is what it is."""

    value: int
    why: str


class Scores(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Holds the table."""

    source: str
    as_of: str
    kinds: dict[Kind, Number]
    steps: dict[Step, Number]
    limits: dict[Limit, Number]
    distances: dict[Distance, Number]


@cache
def scores() -> Scores:
    """Read the table, once a process."""
    return msgspec.convert(load_file(Path(__file__).with_name("data") / "scores.toml"), Scores)


@cache
def points(step: Step) -> int:
    """Return the points that a step adds."""
    return scores().steps[step].value


@cache
def limit(name: Limit) -> int:
    """Return the score that a score is compared with."""
    return scores().limits[name].value


@cache
def distance(name: Distance) -> int:
    """Return the largest distance that still counts."""
    return scores().distances[name].value


@cache
def _points_of_kind(kind: Kind) -> int:
    return scores().kinds[kind].value


def score(evidence: Evidence, *, tolerated: bool) -> int:
    """Return how much a line counts by itself for being the cause; its place in a chain of exceptions comes on top."""
    total = _points_of_kind(evidence.kind) + evidence.sign.points
    if evidence.family is not None:
        total += points(Step.FAMILY_KNOWN) + evidence.family.weight
    return total + points(Step.TOLERATED) if tolerated else total
