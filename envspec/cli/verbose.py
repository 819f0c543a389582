"""`envspec -v`: every command that is run, on standard error."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from envspec.host.commands import traced
from envspec.host.trace import CommandText


def commands_shown(*, output: bool) -> AbstractContextManager[None]:
    """Show every command that is run inside; with `output` also what it prints."""
    return traced(CommandText(_show, output=output))


def _show(line: str) -> None:
    # Looked up anew for each line: a live display puts a stream of its own in its place, which writes above it.
    print(line, file=sys.stderr, flush=True)
