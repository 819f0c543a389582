"""Words and phrases of failure, from `data/phrases.toml` and `data/words.toml`.

What they mean for a diagnosis is decided by those who use them: `forms`, `lines`, `scanning` and the rest.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from envspec.data import load_file

ListName = Literal[
    "cues",
    "anchors",
    "loader",
    "shell",
    "crash",
    "linker-remark",
    "tool-failed",
    "missing-piece",
    "goes-on",
    "exception-names",
    "lookups",
    "stops",
]
WordKind = Literal["error", "warning", "note", ""]
_DATA = Path(__file__).with_name("data")


class PhraseList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Describes one list of phrases that are used for one thing."""

    what: str
    source: str
    as_of: str
    texts: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    ignore_case: bool = False


class _Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: str
    as_of: str
    error: tuple[str, ...]
    warning: tuple[str, ...]
    note: tuple[str, ...]


@cache
def phrase_lists() -> dict[ListName, PhraseList]:
    """Return every list of phrases by its name."""
    return msgspec.convert(load_file(_DATA / "phrases.toml"), dict[ListName, PhraseList])


@cache
def texts(name: ListName) -> tuple[str, ...]:
    """Return the plain strings of a list."""
    return phrase_lists()[name].texts


@cache
def pattern(name: ListName) -> re.Pattern[str]:
    """Return the regular expressions of a list as one."""
    chosen = phrase_lists()[name]
    return re.compile("|".join(chosen.patterns), re.IGNORECASE if chosen.ignore_case else 0)


@cache
def _words() -> dict[str, WordKind]:
    table = msgspec.convert(load_file(_DATA / "words.toml")["words"], _Words)
    kinds: tuple[WordKind, ...] = ("note", "warning", "error")
    return {word: kind for kind in kinds for word in getattr(table, kind)}


def kind_of_word(word: str) -> WordKind:
    """Return the kind that a compiler's word such as "fatal error", "Warnung" or "erreur" stands for, "" if unknown."""
    known = _words()
    lowered = word.strip().lower()
    first = lowered.split(" ", 1)[0].split("\u00a0", 1)[0]
    return known.get(first) or known.get(lowered) or known.get(lowered.rsplit(" ", 1)[-1], "")
