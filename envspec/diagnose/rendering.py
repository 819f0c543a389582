"""The two faces of a diagnosis: JSON for programs, text for people."""

from __future__ import annotations

import re

import msgspec

from envspec.diagnose.lines import without_escapes
from envspec.diagnose.values import Cause, Diagnosis

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_QUOTE = 400


def to_json(diagnosis: Diagnosis) -> str:
    """Return the versioned JSON form, with a final newline."""
    return msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode() + "\n"


def shown(text: str) -> str:
    """Return a line of a log made safe for a terminal: no control sequence and no invisible character gets through."""
    clean = (
        _CONTROL.sub(lambda c: "\\r" if c[0] == "\r" else f"\\x{ord(c[0]):02x}", without_escapes(text))
        .replace("\t", "    ")
        .strip()
    )
    return clean if len(clean) <= _QUOTE else f"{clean[: _QUOTE - 4]} ..."


def _cause_lines(cause: Cause) -> list[str]:
    return [
        f"  line {cause.line}: {shown(cause.text)}",
        f"  meaning: {shown_long(cause.meaning)}",
        f"  fix: {shown_long(cause.fix)}",
        f"  confidence: {cause.confidence}",
    ]


def shown_long(text: str) -> str:
    """Return our own words, which may hold a piece of the log, made safe for a terminal."""
    return _CONTROL.sub(" ", without_escapes(text))


def render_text(diagnosis: Diagnosis) -> str:
    """Return the report for people. Nothing from the log reaches the terminal as it stands."""
    cause = diagnosis.cause
    if cause is None:
        return "no failure in this log\n"
    if diagnosis.verdict == "cause-not-in-log":
        lines = ["the cause is not in this log; the trail ends here:"]
    else:
        lines = [f"cause[{cause.family}]"]
    lines += _cause_lines(cause)
    if diagnosis.misleading:
        lines += ["", "misleading:"]
        for row in diagnosis.misleading:
            lines += [f"  line {row.line}: {shown(row.text)}", f"    {row.why}"]
    for other in diagnosis.others:
        lines += ["", f"also[{other.family}]", *_cause_lines(other)]
    return "\n".join(lines) + "\n"
