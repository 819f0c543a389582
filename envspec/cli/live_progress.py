"""How progress is shown on a terminal: one live line below the finished ones."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.text import Text

from envspec.report.findings import Finding
from envspec.report.progress import Stage, seconds
from envspec.report.text import note_text


class LiveProgress:
    """Shows a spinner with the current detail on a terminal; finished stages stay above it."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
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
                    Text("✗ ", style="red") + label + Text(f"failed after {seconds(started)}")
                )
                raise
        done = Text("✓ ", style="green") + label + Text(stage.result)
        self._console.print(done + Text(f" ({seconds(started)})", style="dim"))

    def note(self, what: str | Finding) -> None:
        self._console.print(Text(note_text(what)))


def _one_line(text: str, width: int) -> str:
    line = "".join(c if c.isprintable() else " " for c in text.strip())
    return line[: max(width, 10)]
