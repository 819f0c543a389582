"""The tables of knowledge under `data/`: cause families, misleading lines, harmless lines, signs of life.

A row holds cheap literals (`contains`, at least one has to be in the line) and patterns that are compiled only when a
literal was seen, so that a table of a few hundred rows costs neither start-up time nor time per line. What the fields
mean is written in `data/README.md`; `tests/unit/diagnose/test_knowledge.py` checks every row.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal, get_args

import msgspec

from envspec.diagnose.evidence import Kind
from envspec.diagnose.tables import DATA, read_toml


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every row has: when it applies, and where the knowledge is from."""

    id: str
    contains: tuple[str, ...]
    pattern: str = ""
    unless: str = ""
    source: str
    as_of: str

    def match(self, body: str) -> dict[str, str] | None:
        """The named parts of the line if the row applies to it; one of its literals is known to be in the line."""
        parts: dict[str, str] = {}
        if self.pattern:
            found = _compiled(self.pattern).search(body)
            if not found:
                return None
            parts = {name: value for name, value in found.groupdict().items() if value}
        if self.unless and _compiled(self.unless).search(body):
            return None
        return parts


class Family(_Row, frozen=True, kw_only=True):
    """One family of causes."""

    kind: Kind
    meaning: str
    fix: str
    weight: int = 0
    alone: bool = True
    follows: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    mends: str = ""


class Noise(_Row, frozen=True, kw_only=True):
    """A line that misleads: it follows from the cause, or gives advice that does not depend on it."""

    why: str
    failure: bool = False
    show: str = ""
    true_for: tuple[str, ...] = ()


class Harmless(_Row, frozen=True, kw_only=True):
    """A line that looks like an error in the logs of healthy processes."""

    why: str


class Marks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Signs of life and words that make a message tolerated."""

    ready: tuple[str, ...]
    progress: tuple[str, ...]
    tolerated: str
    source: str
    as_of: str


class Default(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to say about a kind of evidence for which no family has an entry."""

    family: str
    meaning: str
    fix: str


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """All tables."""

    families: tuple[Family, ...]
    noise: tuple[Noise, ...]
    harmless: tuple[Harmless, ...]
    marks: Marks
    defaults: dict[Kind, Default]

    def family(self, identifier: str) -> Family | None:
        """The family of this name."""
        return next((f for f in self.families if f.id == identifier), None)


Table = Literal["families", "noise", "harmless"]
_GRAM = 4


class RowIndex:
    """Finds the rows of which a literal is in a line, without trying all of them.

    Each literal is filed under its first or last four characters. A line is cut into its runs of four characters, and only
    the literals filed under one of them are looked for: 20 us a line in place of 300. Filing under the rarest four
    would look for fewer still, but takes 15 ms at each start.
    """

    def __init__(self, tables: Knowledge) -> None:
        self._filed: dict[str, list[tuple[str, Table, int]]] = {}
        self._rows = {table: getattr(tables, table) for table in get_args(Table)}
        for table, rows in self._rows.items():
            for place, row in enumerate(rows):
                for literal in row.contains:
                    ends = (literal[:_GRAM], literal[-_GRAM:])
                    end = min(ends, key=lambda gram: len(self._filed.get(gram, ())))
                    self._filed.setdefault(end, []).append((literal, table, place))
        self._body: str | None = None
        self._places: dict[Table, list[int]] = {}

    def match(self, table: Table, body: str) -> tuple[Any, dict[str, str]] | None:
        """The first row of a table that applies to the line, and the named parts of the line."""
        if body != self._body:
            self._body, self._places = body, self._look_up(body)
        for place in self._places.get(table, ()):
            row = self._rows[table][place]
            parts = row.match(body)
            if parts is not None:
                return row, parts
        return None

    def _look_up(self, body: str) -> dict[Table, list[int]]:
        found: dict[Table, set[int]] = {}
        for gram in _grams(body) & self._filed.keys():
            for literal, table, place in self._filed[gram]:
                if literal in body:
                    found.setdefault(table, set()).add(place)
        return {table: sorted(places) for table, places in found.items()}


def _grams(text: str) -> set[str]:
    return {text[i : i + _GRAM] for i in range(len(text) - _GRAM + 1)}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def knowledge() -> Knowledge:
    """Read the tables, once a process."""
    rows: dict[str, list[Any]] = {"family": [], "noise": [], "harmless": []}
    for path in sorted(DATA.glob("*.toml")):
        for key, value in read_toml(path).items():
            if key in rows:
                rows[key].extend(value)
            else:
                rows[key] = value
    return msgspec.convert(
        {
            "families": rows["family"],
            "noise": rows["noise"],
            "harmless": rows["harmless"],
            "marks": rows["marks"],
            "defaults": rows["defaults"],
        },
        Knowledge,
    )
