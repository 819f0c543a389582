"""How a build shows what it does: a live line on a terminal, plain lines with timings elsewhere."""

from __future__ import annotations

import contextlib
import time
from typing import Protocol


def seconds(since: float) -> str:
    """Return the time that has passed since a moment of the monotonic clock, for people."""
    return f"{time.monotonic() - since:.1f} s"


class Stage:
    """One running stage. `detail` is what it is doing right now, `result` what it came to."""

    def __init__(self, show: ShowDetail) -> None:
        self._show = show
        self.result = ""

    def detail(self, text: str) -> None:
        """Say what is being done now."""
        self._show(text)


class ShowDetail(Protocol):
    """Shows or drops one line."""

    def __call__(self, text: str) -> None: ...


class Progress(Protocol):
    """What a build needs of a display."""

    def stage(self, name: str) -> contextlib.AbstractContextManager[Stage]:
        """Begin a stage; leaving it ends it, with its timing."""

    def note(self, text: str) -> None:
        """A line that stays."""
