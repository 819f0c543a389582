"""What one line is by itself: by the tables, and by its form. What came before the line is not known here."""

from __future__ import annotations

import re

from envspec.diagnose.evidence import Sign
from envspec.diagnose.forms import names_a_place
from envspec.diagnose.knowledge import Family, Knowledge, MisleadingLine
from envspec.diagnose.phrases import texts
from envspec.diagnose.row_index import RowIndex

MAX_SHAPES = 20_000
_SHAPE = 240
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))


class Classifier:
    """Looks lines up in the tables. It remembers the shapes of lines that are no evidence, since most lines repeat."""

    def __init__(self, tables: Knowledge) -> None:
        literals = {text for row in (*tables.families, *tables.misleading) for text in row.contains}
        plain = {_without_digits(literal) for literal in literals}
        cues = texts("cues")
        self._cues = (*cues, *sorted(text for text in plain if not any(cue in text for cue in cues)))
        self._rows = RowIndex(tables)
        self._progress = (*tables.progress.ready, *tables.progress.working)
        self._ready = tables.progress.ready
        self._passed_over: set[str] = set()

    def is_passed_over(self, body: str) -> bool:
        """Return whether nothing in the line could make it evidence."""
        shape = body[:_SHAPE].translate(_NO_DIGITS)
        if shape in self._passed_over:
            return True
        if any(cue in body for cue in self._cues) or names_a_place(body):
            return False
        if len(body) <= _SHAPE and len(self._passed_over) < MAX_SHAPES:
            self._passed_over.add(shape)
        return True

    def shows_progress(self, body: str) -> bool:
        """Return whether the line holds a progress marker."""
        return any(marker in body for marker in self._progress)

    def shows_readiness(self, body: str) -> bool:
        """Return whether the line says that the process has started."""
        return any(marker in body for marker in self._ready)

    def is_harmless(self, body: str) -> bool:
        """Return whether healthy processes print the line, too."""
        return self._rows.match("harmless", body) is not None

    def misleading(self, body: str) -> tuple[MisleadingLine, str] | None:
        """Return the row of misleading lines that applies, and the message that is quoted in the line."""
        found = self._rows.match("misleading", body)
        return (found[0], found[1].get("payload", "").strip()) if found else None

    def family(self, body: str) -> tuple[Family | None, dict[str, str]]:
        """Return the family of causes that knows the line, and the named parts of the line."""
        return self._rows.match("families", body) or (None, {})


def family_sign(family: Family | None) -> Sign | None:
    """Return the sign of a family that counts without a form."""
    return Sign(family.kind) if family is not None and family.alone else None


def _without_digits(literal: str) -> str:
    """The longest piece of a literal without digits, because the shapes of lines have none; all of it if that is short."""
    longest = max(re.split(r"\d+", literal), key=len)
    return longest if len(longest) > 5 else literal
