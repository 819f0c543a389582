"""The tables of knowledge under `data/`: families of causes, misleading lines, harmless lines, progress markers.

A row holds cheap literals (`contains`, at least one has to be in the line) and patterns that are compiled only when a
literal was seen, so that a table of a few hundred rows costs neither start-up time nor time per line. What the fields
mean is written in `data/README.md`; `tests/unit/diagnose/test_knowledge.py` checks every row.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from envspec.data import load_file
from envspec.diagnose.kinds import Kind


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
    """Describes one family of causes."""

    kind: Kind
    meaning: str
    fix: str
    weight: int = 0
    alone: bool = True
    follows: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    command: Literal["", "rebuild", "repair", "check"] = ""


class MisleadingLine(_Row, frozen=True, kw_only=True):
    """Describes a line that misleads: it follows from the cause, or gives advice that does not depend on it.

    `failure` means that the line proves that something failed.
    """

    why: str
    failure: bool = False
    show: str = ""
    true_for: tuple[str, ...] = ()


class Harmless(_Row, frozen=True, kw_only=True):
    """Describes a line that looks like an error in the logs of healthy processes."""

    why: str


class ProgressMarkers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Says what a process prints when it has started (`ready`) and while it works (`working`)."""

    ready: tuple[str, ...]
    working: tuple[str, ...]
    source: str
    as_of: str


class Default(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Holds the words for a kind of evidence for which no family has an entry."""

    family: str
    meaning: str
    fix: str


class Knowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Holds all tables."""

    families: tuple[Family, ...]
    misleading: tuple[MisleadingLine, ...]
    harmless: tuple[Harmless, ...]
    progress: ProgressMarkers
    defaults: dict[Kind, Default]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def knowledge() -> Knowledge:
    """Read the tables, once a process. The families' files are read in the order of their names."""
    data = Path(__file__).with_name("data")
    families = [row for path in sorted(data.glob("families-*.toml")) for row in load_file(path)["family"]]
    others = [load_file(data / f"{name}.toml") for name in ("misleading", "harmless", "progress", "defaults")]
    tables = {name: table for file in others for name, table in file.items()}
    return msgspec.convert({"families": families, **tables}, Knowledge)
