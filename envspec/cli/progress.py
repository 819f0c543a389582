"""How progress is shown: lines in a pipe, one live line on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TextIO

from envspec.report.findings import Finding
from envspec.report.progress import Progress, Stage, seconds
from envspec.report.text import note_text


class PlainProgress:
    """Shows one line when a stage ends, and one for each note. It is for pipes, logs and CI."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        started = time.monotonic()
        stage = Stage(lambda text: None)
        try:
            yield stage
        except BaseException:
            self.note(f"{name:<9} failed after {seconds(started)}")
            raise
        self.note(f"{name:<9} {stage.result} ({seconds(started)})")

    def note(self, what: str | Finding) -> None:
        print(note_text(what), file=self._stream, flush=True)


def make_progress(stream: TextIO | None = None) -> Progress:
    """Return the display that fits the stream (standard error by default)."""
    stream = stream or sys.stderr
    if stream.isatty():
        from envspec.cli.live_progress import LiveProgress  # and rich with it, which a pipe need not wait for

        return LiveProgress(stream)
    return PlainProgress(stream)


def waiting_for(who: str) -> None:
    """Say on standard error who holds the lock that this command waits for."""
    print(f"waiting for {who}", file=sys.stderr, flush=True)
