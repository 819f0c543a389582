"""A strict reader over parsed TOML: every key must be known, every value of the type that is named.

Each error names the dotted path, the offending text and, for an unknown key, the nearest valid one.
This module knows TOML values and messages; which keys exist is the business of `read.py`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from envspec.report.errors import UsageError

T = TypeVar("T")

_BARE = re.compile(r"[A-Za-z0-9_-]+(\[\d+\])?")

_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "a table",
}


def show(value: object, limit: int = 120) -> str:
    """Return the offending text, short and on one line, with nothing that could steer a terminal."""
    text = repr(value) if isinstance(value, str) else str(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def nearest(word: str, choices: Sequence[str]) -> str:
    """Return a fix that names the closest valid choice, or all of them when none is close."""
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "valid here: " + ", ".join(choices) if choices else ""


class Table:
    """Reads one TOML table. `close` must be called last: it refuses what nobody asked for."""

    def __init__(self, file: Path, values: dict[str, Any], path: str = "") -> None:
        self.file = file
        self.path = path
        self._values = values
        self._known: list[str] = []

    def dotted(self, key: str) -> str:
        """Return the full name of a key, as the user would write it."""
        part = key if _BARE.fullmatch(key) else show(key)
        return f"{self.path}.{part}" if self.path else part

    def fail(self, key: str, what: str, *, code: str = "profile-value", fix: str = "") -> NoReturn:
        """Refuse the value of `key`. `what` continues the sentence that begins with the dotted path."""
        raise UsageError(code, f"{self.dotted(key)} {what}", where=str(self.file), fix=fix)

    def get(self, key: str, kind: type[T], default: T | None = None) -> T | None:
        """Return the value of `key` if it has the type, `default` if it is not there."""
        self._known.append(key)
        if key not in self._values:
            return default
        value = self._values[key]
        # bool is an int to Python, but `true` is no number to a user.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            actual = _TYPE_NAMES.get(type(value), type(value).__name__)
            self.fail(
                key,
                f"must be {_TYPE_NAMES[kind]}, not {actual}: {show(value)}",
                code="profile-wrong-type",
                fix=f'put it in quotes: "{value}"' if kind is str and type(value) in (int, float) else "",
            )
        return value

    def need(self, key: str, kind: type[T], example: str) -> T:
        """Return the value of a key that must be there."""
        value = self.get(key, kind)
        if value is None:
            misspelt = difflib.get_close_matches(key, [k for k in self._values if k not in self._known], n=1)
            if misspelt:
                raise UsageError(
                    "profile-unknown-key",
                    f"unknown key {self.dotted(misspelt[0])}",
                    where=str(self.file),
                    why=f"{self.dotted(key)} has to be there and is not",
                    fix=f"did you mean {key!r}?",
                )
            self.fail(key, "is missing", code="profile-missing-key", fix=f"add it, for example: {example}")
        return value

    def strings(self, key: str) -> tuple[str, ...] | None:
        """Return a list of strings, or None if the key is not there."""
        values = self.get(key, list)
        if values is None:
            return None
        for position, value in enumerate(values):
            if not isinstance(value, str):
                self.fail(
                    f"{key}[{position}]",
                    f"must be a string, not {_TYPE_NAMES.get(type(value), type(value).__name__)}: {show(value)}",
                    code="profile-wrong-type",
                )
        return tuple(values)

    def table(self, key: str) -> Table | None:
        """Return a sub-table, or None if the key is not there."""
        values = self.get(key, dict)
        return None if values is None else Table(self.file, values, self.dotted(key))

    def tables(self, key: str) -> list[Table]:
        """Return an array of tables; empty if the key is not there."""
        values = self.get(key, list) or []
        for position, value in enumerate(values):
            if not isinstance(value, dict):
                self.fail(
                    f"{key}[{position}]", f"must be a table, not {show(value)}", code="profile-wrong-type"
                )
        return [
            Table(self.file, value, f"{self.dotted(key)}[{position}]")
            for position, value in enumerate(values)
        ]

    def raw(self, key: str) -> object:
        """Return the value of `key` whatever its type, or None; for keys that several types may hold."""
        self._known.append(key)
        return self._values.get(key)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield all keys and values, for tables whose keys are names that the user chose."""
        for key, value in self._values.items():
            self._known.append(key)
            yield key, value

    def parsed(self, key: str, text: str, parse: Callable[[str], T], expected: str) -> T:
        """Return `parse(text)`, with its ValueError turned into a message about `key`."""
        try:
            return parse(text)
        except ValueError:
            self.fail(key, f"is not {expected}: {show(text)}")

    def close(self) -> None:
        """Refuse the first key that nobody asked for."""
        for key in self._values:
            if key not in self._known:
                where = self.path or "the profile"
                raise UsageError(
                    "profile-unknown-key",
                    f"unknown key {self.dotted(key)}",
                    where=str(self.file),
                    why=f"{where} has no such key, and a key that is not read would be a wish not granted",
                    fix=nearest(key, sorted(set(self._known))),
                )
