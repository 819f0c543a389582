"""How progress is shown: lines in a pipe, one live line on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

from envspec.report.findings import Finding
from envspec.report.progress import Progress, Stage
from envspec.report.text import render_finding


def _seconds(since: float) -> str:
    return f"{time.monotonic() - since:.1f} s"


class PlainProgress:
    """One line when a stage ends, one for each note. For pipes, logs and CI."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        started = time.monotonic()
        stage = Stage(lambda text: None)
        try:
            yield stage
        except BaseException:
            self.note(f"{name:<9} failed after {_seconds(started)}")
            raise
        self.note(f"{name:<9} {stage.result} ({_seconds(started)})")

    def note(self, what: str | Finding) -> None:
        print(_text(what), file=self._stream, flush=True)


class LiveProgress:
    """A spinner with the current detail on a terminal; finished stages stay above it."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        from rich.text import Text

        started = time.monotonic()
        label = Text(f"{name:<9} ", style="bold")
        with self._console.status(label) as status:
            stage = Stage(
                lambda text: status.update(
                    label + Text(_one_line(text, self._console.width - 14), style="dim")
                )
            )
            try:
                yield stage
            except BaseException:
                self._console.print(
                    Text("✗ ", style="red") + label + Text(f"failed after {_seconds(started)}")
                )
                raise
        done = Text("✓ ", style="green") + label + Text(stage.result)
        self._console.print(done + Text(f" ({_seconds(started)})", style="dim"))

    def note(self, what: str | Finding) -> None:
        from rich.text import Text

        self._console.print(Text(_text(what)))


def _text(what: str | Finding) -> str:
    return render_finding(what) if isinstance(what, Finding) else what


def _one_line(text: str, width: int) -> str:
    line = "".join(c if c.isprintable() else " " for c in text.strip())
    return line[: max(width, 10)]


def make_progress(stream: TextIO | None = None) -> Progress:
    """The display that fits the stream (standard error by default)."""
    stream = stream or sys.stderr
    if stream.isatty():
        from rich.console import Console

        return LiveProgress(Console(file=stream))
    return PlainProgress(stream)


def waiting_for(who: str) -> None:
    """Say on standard error who holds the lock that this command waits for."""
    print(f"waiting for {who}", file=sys.stderr, flush=True)
