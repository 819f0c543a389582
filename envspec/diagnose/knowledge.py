"""The tables of knowledge under `data/`: cause families, misleading lines, harmless lines, signs of life.

A row holds cheap literals (`contains`, at least one has to be in the line) and patterns that are compiled only when a
literal was seen, so that a table of a few hundred rows costs neither start-up time nor time per line. What the fields
mean is written in `data/README.md`; `tests/diagnose/test_knowledge.py` checks every row.
"""

from __future__ import annotations

import importlib
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from envspec.diagnose.evidence import Kind

DATA = Path(__file__).parent / "data"


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every row has: when it applies, and where the knowledge is from."""

    id: str
    contains: tuple[str, ...]
    pattern: str = ""
    unless: str = ""
    source: str
    as_of: str

    def match(self, body: str) -> dict[str, str] | None:
        """The named parts of the line if the row applies to it."""
        if not any(literal in body for literal in self.contains):
            return None
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


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _toml(path: Path) -> dict[str, Any]:
    parser = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    tables: dict[str, Any] = parser.loads(path.read_text(encoding="utf-8"))
    return tables


@cache
def knowledge() -> Knowledge:
    """Read the tables, once a process."""
    rows: dict[str, list[Any]] = {"family": [], "noise": [], "harmless": []}
    for path in sorted(DATA.glob("*.toml")):
        for key, value in _toml(path).items():
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
