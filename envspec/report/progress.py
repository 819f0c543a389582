"""How a command shows what it does: what it needs of a display. The displays themselves are the command line's."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Protocol

from envspec.report.findings import Finding


def seconds(since: float) -> str:
    """Return the time that has passed since a moment of the monotonic clock, for people."""
    return f"{time.monotonic() - since:.1f} s"


class Stage:
    """Describes one running stage. `result` is what it came to, in a few words, and is shown when it ends."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self.result = ""

    def detail(self, text: str) -> None:
        """Say what is being done now. It may never be seen."""
        self._show(text)


class Progress(Protocol):
    """Says what a command needs of a display."""

    def stage(self, name: str) -> contextlib.AbstractContextManager[Stage]:
        """Begin a stage; leaving it ends it, with its timing."""

    def note(self, what: str | Finding) -> None:
        """Show a line or a finding that stays."""
