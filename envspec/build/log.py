"""The log of a build: its stages, every command with input, environment, output and exit code, and how it ended.

It is kept in memory, in bounds, and written into the output when the build has ended, also by an error or by Ctrl-C. A build
that finds nothing to do leaves the log of the build before it. Secrets are masked in every line.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from envspec import __version__
from envspec.fs import write_synced
from envspec.host.commands import traced
from envspec.host.trace import CommandText
from envspec.output.generations import LOG, Output
from envspec.report.errors import EnvspecError, Terminated
from envspec.report.findings import Finding
from envspec.report.os_errors import explain_os_error
from envspec.report.progress import Progress, Stage
from envspec.report.secrets import secrets_of
from envspec.report.text import note_text, printable, render_error

_FIRST = 1 << 20
_LAST = 3 << 20
_OUTPUT = 64 << 10


class BuildLog:
    """Holds the lines of one build's log. `environ` is the build's environment, whose secrets are masked."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._secrets = secrets_of(environ)
        self._first: list[str] = []
        self._last: deque[str] = deque()
        self._left = _FIRST
        self._kept = 0
        self._omitted = 0
        self.commands = CommandText(self.write, output=True, most_output=_OUTPUT)
        for line in _head():
            self.write(line)

    def write(self, line: str) -> None:
        """Add a line. The first and the last megabytes of a log that is too long are kept."""
        line = printable(self._secrets.masked(line))
        size = len(line) + 1
        if self._left >= size:
            self._left -= size
            self._first.append(line)
            return
        self._left = 0
        self._last.append(line)
        self._kept += size
        while self._kept > _LAST:
            self._kept -= len(self._last.popleft()) + 1
            self._omitted += 1

    @property
    def text(self) -> str:
        """Return the whole log."""
        gap = [f"[{self._omitted} lines are left out]"] if self._omitted else []
        return "\n".join([*self._first, *gap, *self._last]) + "\n"

    @contextlib.contextmanager
    def kept_in(self, output: Output, shown: Path) -> Iterator[None]:
        """Write the log into an output, whose lock is held, if what is done inside fails; errors then name it.

        `shown` is the output as the user named it.
        """
        try:
            yield
        except EnvspecError as error:
            self._failed(output, shown, error)
            raise
        except OSError as error:
            error.filename = error.filename or str(output.root)  # a write does not say whose it was
            explained = explain_os_error(error)
            self._failed(output, shown, explained)
            raise explained from error
        except BaseException as error:
            ended = isinstance(error, (KeyboardInterrupt, Terminated))
            self.write("interrupted" if ended else f"a fault of envspec: {error!r}")
            self.save(output)
            raise

    def _failed(self, output: Output, shown: Path, error: EnvspecError) -> None:
        for line in render_error(error).splitlines():
            self.write(line)
        if self.save(output):
            error.log = str(shown / LOG)

    def save(self, output: Output) -> bool:
        """Write the log into an output, and tell whether that was possible; it is no error of its own."""
        try:
            write_synced(output.root / LOG, self.text.encode("utf-8", "replace"))
        except OSError:
            return False
        return True


class LoggedProgress:
    """Shows progress on another display, and writes a copy into a log."""

    def __init__(self, shown: Progress, log: BuildLog) -> None:
        self._shown = shown
        self._log = log

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Begin a stage; the log gets its beginning, its result and its timing."""
        self._log.write(f"== {name}")
        started = time.monotonic()
        try:
            with self._shown.stage(name) as stage:
                yield stage
        except BaseException:
            self._log.write(f"== {name} failed after {time.monotonic() - started:.1f} s")
            raise
        self._log.write(f"== {name}: {stage.result} ({time.monotonic() - started:.1f} s)")

    def note(self, what: str | Finding) -> None:
        """Show a line or a finding that stays."""
        self._shown.note(what)
        for line in note_text(what).splitlines():
            self._log.write(line)


@contextlib.contextmanager
def build_log(environ: Mapping[str, str], shown: Progress) -> Iterator[tuple[BuildLog, Progress]]:
    """Give a log that hears of every command that is run inside, and a progress of which it gets a copy."""
    log = BuildLog(environ)
    with traced(log.commands):
        yield log, LoggedProgress(shown, log)


def _head() -> Iterator[str]:
    yield f"envspec {__version__}, {time.strftime('%Y-%m-%d %H:%M:%S %z')}"
    yield f"$ {shlex.join(sys.argv)}"
    kernel = os.uname()  # platform.platform() reads all of the interpreter's file to tell a little more
    yield f"Python {platform.python_version()}, {kernel.sysname} {kernel.release} {kernel.machine}"
