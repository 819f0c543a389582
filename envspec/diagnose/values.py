"""The answer of `envspec diagnose`: frozen values, in the order of their JSON form."""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["cause-found", "cause-not-in-log", "no-failure"]
Confidence = Literal["high", "medium", "low"]


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one problem: the line that shows it, what it means here and what fixes it.

    `line` counts "\\n" from 1 and `text` is that line as it stands in the log, undecodable bytes replaced. Of a
    line longer than `lines.QUOTE_LIMIT` bytes the part around the evidence is kept.
    """

    family: str
    line: int
    text: str
    meaning: str
    fix: str
    confidence: Confidence


class Misleading(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a line that reads like a cause or like advice, and is neither."""

    line: int
    text: str
    why: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Says what is wrong in a log. `version` is the version of the JSON form.

    With the verdict `cause-not-in-log`, `cause` is the line where the trail ends: its `fix` is the command that would
    show more, and its confidence is "low" because the true cause is unknown. With `no-failure` it is None.
    """

    version: int = 1
    verdict: Verdict
    cause: Cause | None
    misleading: tuple[Misleading, ...] = ()
    others: tuple[Cause, ...] = ()
