"""Running other programs: the one place where envspec starts a process, waits for it and ends it.

A program gets no shell, no standard input and a session of its own, so that whatever ends it early (a time limit, Ctrl-C, an
error here) ends all that it started, too: compilers call compilers, and uv calls build backends. What it prints is kept up to
a limit and read on beyond it, so that nothing waits for a full pipe.

Who wants to see what is run adds a `Trace` with `traced`. It is kept in a context variable: threads that are started inside
do not inherit it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Protocol

import msgspec

MOST_OUTPUT = 64 << 20
GRACE = 5.0
"""Seconds between the request to end (SIGTERM) and the end (SIGKILL)."""
_LINGER = 1.0
"""Seconds that output is read for after its program has ended, if a daemon it started keeps the pipe open."""
_CHUNK = 64 << 10
_TICK = 0.1


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a program to run: its arguments, its whole environment, and the directory it starts in (None: this process's own).

    It keeps the descriptors `inherit_fds` open. `inputs` are files that were written for it; a trace shows them.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path | None = None
    inherit_fds: tuple[int, ...] = ()
    inputs: tuple[Path, ...] = ()


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """Says how a program ended. `code` is negative for a signal; `seconds` is how long it ran, and `timed_out` whether too long.

    `out` and `err` are what it printed, as far as it was kept (`omitted` counts the bytes that were not), or empty if it
    printed into the file `log`.
    """

    code: int
    seconds: float
    out: bytes = b""
    err: bytes = b""
    omitted: int = 0
    timed_out: bool = False
    log: Path | None = None


class Trace(Protocol):
    """Is told of every command. `number` counts the commands of this process and tells apart those that run side by side."""

    def started(self, number: int, command: Command) -> None:
        """Take note that a command is about to be started."""

    def ended(self, number: int, command: Command, completed: Completed) -> None:
        """Take note of how a command has ended, by itself or not."""


_TRACES: ContextVar[tuple[Trace, ...]] = ContextVar("traces", default=())
_NUMBERS = itertools.count(1)


@contextlib.contextmanager
def traced(trace: Trace) -> Iterator[None]:
    """Tell `trace` of every command that is run inside."""
    token = _TRACES.set((*_TRACES.get(), trace))
    try:
        yield
    finally:
        _TRACES.reset(token)


def run(
    command: Command,
    *,
    seconds: float | None = None,
    merged: bool = False,
    on_line: Callable[[str], None] | None = None,
    limit: int = MOST_OUTPUT,
) -> Completed:
    """Run a command to its end, or for so many seconds.

    `merged` puts standard error into `out`, where it belongs in time. `on_line` is told each line of standard error as it
    comes. Raise OSError if the program cannot be started.
    """
    running = _start(command, subprocess.PIPE, subprocess.STDOUT if merged else subprocess.PIPE)
    process = running.process
    try:
        out, err = _Pipe(limit), _Pipe(limit, on_line)
        pipes = {stream: pipe for stream, pipe in ((process.stdout, out), (process.stderr, err)) if stream}
        in_time = _read(running, pipes, None if seconds is None else time.monotonic() + seconds)
        err.end()
    except BaseException:
        running.stop()
        raise
    finally:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    code = running.finish() if in_time else running.stop_group()
    return running.told(
        Completed(
            code=code,
            seconds=running.seconds,
            out=bytes(out.kept),
            err=bytes(err.kept),
            omitted=out.omitted + err.omitted,
            timed_out=not in_time,
        )
    )


def start(command: Command, log: Path) -> Running:
    """Start a command that prints into the file `log`. Raise OSError if it cannot be started.

    Whoever starts it has to `poll` it until it has ended, or to `stop` it.
    """
    with log.open("wb") as output:
        return _start(command, output, subprocess.STDOUT, log)


def stop_all(running: Iterable[Running]) -> None:
    """End several programs at once: the time they are given to end by themselves is the same for all."""
    programs = list(running)
    for one in programs:
        one.signal(signal.SIGTERM)
    with contextlib.ExitStack() as stack:
        for one in programs:
            stack.callback(one.stop)


class Running:
    """Describes a program that runs beside this one, and all that it has started."""

    def __init__(
        self, command: Command, number: int, process: subprocess.Popen[bytes], log: Path | None
    ) -> None:
        self.command = command
        self.process = process
        self._number = number
        self._log = log
        self._since = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return how many seconds it has been running."""
        return time.monotonic() - self._since

    def poll(self) -> Completed | None:
        """Return how it ended, or None while it runs."""
        return self._completed(self.finish()) if self.has_ended() else None

    def stop(self, *, timed_out: bool = False) -> Completed:
        """End it with all that it started, first by SIGTERM, then by SIGKILL, and return how it ended."""
        return self._completed(self.stop_group(), timed_out)

    def has_ended(self) -> bool:
        """Tell whether the program itself has ended. Until `finish` no other process can get its number."""
        found = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        return found is not None

    def signal(self, number: int) -> None:
        """Send a signal to it and to all that it started, as far as they have not left its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def stop_group(self) -> int:
        """End it with all that it started, and return its exit code."""
        self.signal(signal.SIGTERM)
        try:
            self.wait(time.monotonic() + GRACE)
        finally:
            code = self.finish()
        return code

    def finish(self) -> int:
        """Kill what is left of what it started, and return its exit code."""
        self.signal(signal.SIGKILL)
        return self.process.wait()

    def wait(self, deadline: float | None) -> bool:
        """Wait for its end, and return False if the deadline came first."""
        pause = 0.0005
        while not self.has_ended():
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 2, _TICK / 4)
        return True

    def told(self, completed: Completed) -> Completed:
        """Tell the traces how it ended."""
        for trace in _TRACES.get():
            trace.ended(self._number, self.command, completed)
        return completed

    def _completed(self, code: int, timed_out: bool = False) -> Completed:
        return self.told(Completed(code=code, seconds=self.seconds, timed_out=timed_out, log=self._log))


def announce(command: Command) -> int:
    """Tell the traces of a command that is about to be started, or to take this process's place, and return its number."""
    number = next(_NUMBERS)
    for trace in _TRACES.get():
        trace.started(number, command)
    return number


def _start(command: Command, stdout: int | IO[bytes], stderr: int, log: Path | None = None) -> Running:
    number = announce(command)
    process = subprocess.Popen(
        command.arguments,
        cwd=command.directory,
        env=dict(command.environment),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        pass_fds=command.inherit_fds,
        start_new_session=True,
    )
    return Running(command, number, process, log)


class _Pipe:
    """What came out of a pipe: kept up to a limit; whoever listens is told each line."""

    def __init__(self, limit: int, on_line: Callable[[str], None] | None = None) -> None:
        self.kept = bytearray()
        self.omitted = 0
        self._limit = limit
        self._on_line = on_line
        self._line = b""

    def feed(self, data: bytes) -> None:
        kept = data[: self._limit - len(self.kept)]
        self.kept += kept
        self.omitted += len(data) - len(kept)
        if self._on_line is None:
            return
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._on_line(line.decode("utf-8", "replace"))
        if len(self._line) > _CHUNK:
            self.end()

    def end(self) -> None:
        """Tell the last line, which has no line break."""
        if self._on_line is not None and self._line:
            self._on_line(self._line.decode("utf-8", "replace"))
        self._line = b""


def _read(running: Running, pipes: Mapping[IO[bytes], _Pipe], deadline: float | None) -> bool:
    """Read what a program prints until it has ended, and return False if the deadline came first."""
    with selectors.DefaultSelector() as selector:
        for stream, pipe in pipes.items():
            selector.register(stream, selectors.EVENT_READ, pipe)
        last: float | None = None
        while selector.get_map():
            for key, _ in selector.select(_TICK):
                data = os.read(key.fd, _CHUNK)
                if data:
                    key.data.feed(data)
                else:
                    selector.unregister(key.fileobj)
            now = time.monotonic()
            if last is None and running.has_ended():
                running.signal(signal.SIGKILL)  # what it left behind would hold the pipe open
                last = now + _LINGER
            if last is not None and now > last:
                break
            if last is None and deadline is not None and now > deadline:
                return False
    return running.wait(deadline)
