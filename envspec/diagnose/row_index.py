"""Finding the rows of the tables that may apply to a line, without trying all of them."""

from __future__ import annotations

from typing import Any, Literal, get_args

from envspec.diagnose.knowledge import Knowledge

Table = Literal["families", "misleading", "harmless"]
_GRAM = 4


class RowIndex:
    """Finds rows by four characters of each of their literals.

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
        """Return the first row of a table that applies to the line, and the named parts of the line."""
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
