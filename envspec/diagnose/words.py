"""What kind a diagnostic of a compiler is, by its word, in the languages that compilers speak."""

from __future__ import annotations

from functools import cache
from typing import Literal

from envspec.diagnose.tables import DATA, read_toml

WordKind = Literal["error", "warning", "note", ""]


@cache
def _words() -> dict[str, WordKind]:
    table = read_toml(DATA / "words.toml")["words"]
    kinds: tuple[WordKind, ...] = ("note", "warning", "error")
    return {word: kind for kind in kinds for word in table[kind]}


def kind_of(word: str) -> WordKind:
    """The kind that a word such as "fatal error", "Warnung" or "erreur" stands for; empty if it is not known."""
    known = _words()
    lowered = word.strip().lower()
    first = lowered.split(" ", 1)[0].split("\u00a0", 1)[0]
    return known.get(first) or known.get(lowered) or known.get(lowered.rsplit(" ", 1)[-1], "")
