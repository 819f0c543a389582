"""Whether the program itself said that it goes on without what failed: by the level of its message, or in words."""

from __future__ import annotations

import re

from envspec.diagnose.forms import worded_sign
from envspec.diagnose.lines import LogLine
from envspec.diagnose.phrases import pattern
from envspec.diagnose.worker import Worker

_PYTHON_WARNING = re.compile(r"(?:^|: )\w{0,40}Warning: ")
_WARNING = frozenset(("WARN", "WARNING", "DEBUG", "TRACE"))
_QUIET = _WARNING | {"INFO", "NOTICE"}
_LOUD = frozenset(("ERROR", "CRITICAL", "FATAL", "SEVERE"))


def is_warning(line: LogLine) -> bool:
    """Return whether the level of the line is that of a warning, or below it."""
    return line.level in _WARNING


def is_loud(line: LogLine) -> bool:
    """Return whether the level of the line is that of an error."""
    return line.level in _LOUD


class Tolerance:
    """Holds the record that is being tolerated: what its worker writes below it, up to the next record, is tolerated, too."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def begin(self, worker: Worker) -> None:
        """Tolerate what this worker writes from here on."""
        self._worker = worker

    def end(self) -> None:
        """Note that the record has ended."""
        self._worker = None

    def covers(self, worker: Worker) -> bool:
        """Return whether what this worker writes now belongs to a tolerated record."""
        return worker is self._worker

    def is_announced(self, line: LogLine) -> bool:
        """Return whether a record that shows no failure says that what follows below it is tolerated."""
        return line.prefixed and (line.level in _QUIET or _says_so(line.body))

    def allows(self, line: LogLine, worker: Worker, *, chained: bool) -> bool:
        """Return whether the failure that a line shows is tolerated."""
        if is_warning(line) or self.covers(worker) or _PYTHON_WARNING.search(line.body[:300]):
            return True
        if chained or is_loud(line) or (not line.prefixed and worded_sign(line.body)):
            return False
        return line.level in _QUIET or _says_so(line.body)


def _says_so(body: str) -> bool:
    return pattern("goes-on").search(body) is not None
