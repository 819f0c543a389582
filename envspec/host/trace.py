"""Commands as text: what is run, with what input and environment, and how it ended. Secrets are masked.

    [3] $ cd /tmp/envspec-lock-x/profile && env UV_NO_PROGRESS=1 UV_OFFLINE=1 \\
          /usr/bin/uv --color never lock --python /usr/bin/python3.12
    [3] pyproject.toml:
        | [project]
    [3] exit 0 after 0.3 s

The line after `$` can be pasted into a shell, except for what is masked in it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from envspec.host.commands import Command, Completed
from envspec.report.secrets import Secrets, secrets_of
from envspec.report.text import printable

_WIDTH = 110
_MOST_INPUT = 64 << 10
_MOST_OUTPUT = 256 << 10


class CommandText:
    """Writes a line for every command. With `output` it also tells what they print, the last `most_output` bytes of each."""

    def __init__(
        self, write: Callable[[str], None], *, output: bool, most_output: int = _MOST_OUTPUT
    ) -> None:
        self._write = write
        self._output = output
        self._most_output = most_output
        self._shown: set[bytes] = set()

    def started(self, number: int, command: Command) -> None:
        """Tell the command, and those of its input files that were not told before."""
        secrets = secrets_of(os.environ, command.environment)
        for line in command_lines(command, os.environ, secrets):
            self._write(f"[{number}] {line}" if line.startswith("$") else f"      {line}")
        for path in command.inputs:
            data = _beginning(path)
            if data and data not in self._shown:
                self._shown.add(data)
                self._write(f"[{number}] {path.name}:")
                self._quote(data, secrets)

    def ended(self, number: int, command: Command, completed: Completed) -> None:
        """Tell how it ended, and what it printed."""
        if self._output:
            secrets = secrets_of(os.environ, command.environment)
            parts = (
                (completed.out, completed.err)
                if completed.log is None
                else (_end(completed.log, self._most_output),)
            )
            for data in parts:
                left_out = len(data) - self._most_output + (completed.omitted if data is completed.out else 0)
                if left_out > 0:
                    self._write(f"[{number}] ({left_out} bytes are left out)")
                self._quote(data[-self._most_output :], secrets)
        self._write(f"[{number}] {_how(completed)} after {completed.seconds:.1f} s")

    def _quote(self, data: bytes, secrets: Secrets) -> None:
        for line in data.decode("utf-8", "replace").rstrip("\n").split("\n") if data.strip() else ():
            self._write(f"    | {printable(secrets.masked(line.expandtabs()))}")


def command_lines(command: Command, own: Mapping[str, str], secrets: Secrets) -> Iterator[str]:
    """Yield the command as a shell would take it, in lines of a width that can be read.

    `own` is this process's environment; only what differs from it is told.
    """
    program = [shlex.quote(secrets.masked(argument)) for argument in command.arguments]
    first = [f"cd {shlex.quote(str(command.directory))} &&"] if command.directory is not None else []
    groups = [[*first, *_environment_words(command.environment, own, secrets)], program]
    if sum(len(word) + 1 for group in groups for word in group) <= _WIDTH:
        groups = [[word for group in groups for word in group]]
    lines = [line for group in groups for line in _filled(group)]
    for number, line in enumerate(lines):
        end = " \\" if number < len(lines) - 1 else ""
        yield printable(f"{'   ' if number else '$ '}{line}{end}")


def _filled(words: Iterable[str]) -> Iterator[str]:
    """Yield the words in lines that are no longer than they have to be."""
    line = ""
    for word in words:
        if line and len(line) + len(word) >= _WIDTH:
            yield line
            line = ""
        line += f" {word}" if line else word
    if line:
        yield line


def _environment_words(environment: Mapping[str, str], own: Mapping[str, str], secrets: Secrets) -> list[str]:
    """Return `env -u REMOVED CHANGED=value`, or `env -i` with all variables where hardly any of this process's are left."""
    removed = sorted(own.keys() - environment.keys())
    if len(removed) > len(environment):
        removed, changed, words = [], sorted(environment), ["env", "-i"]
    else:
        changed = sorted(name for name, value in environment.items() if own.get(name) != value)
        words = ["env"] if removed or changed else []
    words += [f"-u {shlex.quote(name)}" for name in removed]
    return words + [
        shlex.quote(f"{name}={secrets.masked_variable(name, environment[name])}") for name in changed
    ]


def _how(completed: Completed) -> str:
    if completed.timed_out:
        return "ended for its time"
    return f"exit {completed.code}" if completed.code >= 0 else f"ended by signal {-completed.code}"


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_INPUT)
    except OSError:
        return b""


def _end(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - most))
            return file.read(most)
    except OSError:
        return b""
