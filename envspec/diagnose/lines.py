"""One physical line of a log, taken apart: what was written around each message, and the message itself.

Servers, launchers, container runtimes and log shippers each put something in front of a line, and they nest. Here the
layers are peeled off one by one; what identifies a worker is kept as `source`, so that interleaved workers can be
told apart. What a message means is not decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

QUOTE_LIMIT = 16_384
"""Bytes of one line that are looked at and quoted. Longer lines are JSON dumps or base64, or they were made to hurt."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\^_=>78c])")

_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE)"
_DATE = r"\d{4}[-/]\d\d[-/]\d\d"
_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

# Each takes at most one blank after itself, because the indentation behind a prefix belongs to the message.
_PREFIXES = tuple(
    re.compile(p)
    for p in (
        rf"\[{_DATE}[ T]{_TIME}(?P<source>(?: [A-Z]{{1,4}}\d{{1,4}}){{0,6}})\](?: {_LEVEL}\b:?)?(?: [\w.]{{1,40}}:\d{{1,6}}:)? ?",
        r"\((?P<source>[^()]{0,120}\bpid=\d{1,9}[^()]{0,80})\) ?",
        rf"{_LEVEL} \d\d-\d\d {_TIME} \[?[\w./-]{{1,80}}:\d{{1,6}}\] ?",
        rf"\[?{_DATE}[ T]{_TIME} ?(?:Z|UTC|[+-]\d\d:?\d\d)?\]?(?:\t| ?)",
        rf"\|? ?{_LEVEL} {{0,8}}\| [\w.<>-]{{1,100}}:[\w.<>-]{{1,60}}:\d{{1,6}} - ",
        rf"(?:- )?(?:[\w.-]{{1,60}} - )?{_LEVEL} - (?:[\w./-]{{1,60}} - )?",
        rf"(?:\[[\w-]{{1,40}}\])?\[{_LEVEL}\] ?",
        rf"{_LEVEL}:[\w.]{{1,80}}:(?! )",
        rf"{_LEVEL}:\s{{1,8}}(?=\S)",
        rf"{_LEVEL} (?=\[|\()",
        r"\[(?P<source>pod/[a-z0-9-]{1,80}/[a-z0-9./-]{1,80})\] ",
        r"(?P<source>[A-Za-z][\w.-]{0,60}) {1,30}\| ",
        r"(?:stdout|stderr) [FP] ",
        rf"{_MONTH} {{1,2}}\d{{1,2}} {_TIME} [\w.-]{{1,64}} (?P<source>[\w./@-]{{1,64}}(?:\[\d{{1,9}}\])?): ",
        r"\[(?P<source>(?:rank|default)?\d{1,5})\]:(?=\S) ?",
        r"\[(?P<source>(?:rank|default)?\d{1,5})\]: ?",
        r"\[(?P<glog>[IWEF])\d{3,6} [\d:. -]{6,20}(?: ?\d{1,9})? ?[\w./-]{1,80}:\d{1,6}\] ?",
        r"(?P<glog>[IWEF])\d{4} \d\d:\d\d:\d\d[.\d]{0,10} {1,4}\d{1,9} [\w./-]{1,80}:\d{1,6}\] ?",
        r"\[(?P<source>\d{1,5},\d{1,5})\]<(?:stdout|stderr)>: ?",
        r"#\d{1,4} (?:\d{1,6}\.\d{1,3} )?(?=\S)",
        r"(?P<source>[A-Za-z][\w./@-]{0,60}\[\d{1,9}\]): ",
        r"\[(?:[\w./-]{1,60}:\d{1,6})\] ",
        r"[\w/.-]{1,60}\.py:\d{1,6}\] ",
    )
)
_GLOG = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL"}
_FIRST = frozenset("[(|-#{ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_JSON_KEYS = ("log", "message", "msg", "text", "event", "content")
# Line ends that were lost when a log was pasted.
_RELAYED = re.compile(r"(?<=.) (?=\([\w ]{1,60} pid=\d{1,9}[^()]{0,60}\) )")
_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$")


class LogLine(msgspec.Struct, frozen=True, gc=False):
    """Describes one message of a log, and where it stands.

    `number` and `raw` are of the physical line, counted from 1. `source` tells workers apart and may be empty; `level` is
    the level's name or empty. `body` is the message without what was written around it. `prefixed` tells a new record from
    the rest of an earlier one.
    """

    number: int
    raw: str
    source: str
    level: str
    body: str
    prefixed: bool

    @property
    def is_indented(self) -> bool:
        """Tell whether the message begins with a blank, or is empty."""
        return self.body[:1] in " \t"


def without_escapes(text: str) -> str:
    """Return the text without terminal control sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def _unwrap_json(text: str) -> tuple[str, str] | None:
    """Message and level of a line that is a JSON record, as container runtimes and structured loggers write them."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    for key in _JSON_KEYS:
        if isinstance(record.get(key), str):
            level = record.get("level") or record.get("severity") or record.get("levelname") or ""
            return record[key], level.upper() if isinstance(level, str) else ""
    return None


def _peel(text: str) -> tuple[str, str, str, bool]:
    """Source, level, message, and whether anything was written before it."""
    source, level, prefixed = "", "", False
    for _ in range(8):
        if not text or text[0] not in _FIRST:
            break
        if text[0] == "{" and text.startswith('{"') and (unwrapped := _unwrap_json(text)):
            text, level = without_escapes(unwrapped[0]).rstrip("\n"), level or unwrapped[1]
            prefixed = True
            continue
        for pattern in _PREFIXES:
            found = pattern.match(text)
            if found and found.end():
                break
        else:
            break
        groups = found.groupdict()
        if groups.get("source"):
            source = f"{source} {groups['source'].strip()}".strip()
        inner = groups.get("level") or _GLOG.get(groups.get("glog") or "", "")
        if inner or found.re is _PREFIXES[0]:
            level = inner  # a relayed line keeps the level it was written with, not the level of the relay
        text, prefixed = text[found.end() :], True
    return source, level, text, prefixed


def log_lines(number: int, raw: str) -> Iterator[LogLine]:
    """Yield the messages of one physical line.

    A carriage return starts a new one: progress bars overwrite themselves, and what a program prints between two of
    their states is on the same physical line. So does a written-out backslash-n, which logs that print `repr` contain.
    """
    parts = [p for p in raw.split("\r") if p] if "\r" in raw else [raw]
    if raw.count(" pid=") > 3:
        parts = [piece for part in parts for piece in _RELAYED.split(part) if piece]
    for part in parts[-64:]:
        source, level, text, prefixed = _peel(without_escapes(part))
        several = "\n" in text or "\\n" in text
        for place, piece in enumerate(re.split(r"\n|\\n", text, maxsplit=400) if several else (text,)):
            body = piece.rstrip()
            if body:
                body = _REPEATED.sub("", body) if "[repeated " in body else body
                yield LogLine(number, raw, source, level, body, prefixed and not place)
