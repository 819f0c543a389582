"""The command, called as people call it: its two outputs and its exit code.

`envspec` starts a process, as a shell does. `in_process` calls the same entry point in this one, which takes a tenth of the
time: for what does not depend on a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import pytest
from click.testing import CliRunner

from envspec.cli.main import cli, run
from envspec.report.findings import Report
from tests.support.texts import without_more

ENVSPEC = (sys.executable, "-m", "envspec")


class Done(NamedTuple):
    """What a finished command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


def envspec(
    *args: str | os.PathLike[str],
    cwd: Path,
    env: Mapping[str, str | None] | None = None,
    timeout: float = 120,
) -> Done:
    """Run it to its end. `env` is laid over this process's environment; None removes a variable."""
    done = subprocess.run(
        [*ENVSPEC, *(os.fspath(arg) for arg in args)],
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def in_process(*args: str | os.PathLike[str], cwd: Path, env: Mapping[str, str | None] | None = None) -> Done:
    """Run it to its end in this process, with the directory, environment and outputs that another one would have."""
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        patch.chdir(cwd)
        for name, value in (env or {}).items():
            if value is None:
                patch.delenv(name, raising=False)
            else:
                patch.setenv(name, value)
        with (
            _standing_for(1, "stdout", out, patch),
            _standing_for(2, "stderr", err, patch),
            Path(os.devnull).open(encoding="utf-8") as nothing,
        ):
            patch.setattr(sys, "stdin", nothing)
            code = run([os.fspath(arg) for arg in args])
        return Done(code, _text(out), _text(err))


@contextlib.contextmanager
def _standing_for(number: int, name: str, file: IO[bytes], patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a file be one of the two outputs, for Python and for the programs that it starts."""
    kept = os.dup(number)
    os.dup2(file.fileno(), number)
    try:
        with open(file.fileno(), "w", encoding="utf-8", closefd=False) as stream:
            patch.setattr(sys, name, stream)
            yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def environment(over: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """This process's environment with some variables replaced or (None) removed."""
    merged = {**os.environ, **(over or {})}
    return {name: value for name, value in merged.items() if value is not None}


def masked(text: str, *places: Path) -> str:
    """The text without what differs from machine to machine, and without the `more:` lines, which are checked here."""
    for place in places:
        text = text.replace(str(place), "DIR")
    text = re.sub(r"\d+\.\d s\b", "T s", text)
    text = re.sub(r"^toolkit   [0-9a-f]{16}:", "toolkit   DIGEST:", text, flags=re.MULTILINE)
    text = re.sub(r"(is current), sha256:[0-9a-f]{12}", r"\1, DIGEST", text)
    text = re.sub(r"(sm_\w+), Python 3\.\d+\.\d+, \S+ \(", r"\1, PYTHON, COMPILER (", text)
    return without_more(text)


def on_disk(*roots: Path) -> dict[str, tuple[object, ...]]:
    """Everything below: names, kinds, modes, contents as far as size, inode and time of change tell.

    The build lock is left out: to take it is what a build does before it knows that there is nothing to do. So is the log
    of the last build, which a build that fails writes.
    """
    found: dict[str, tuple[object, ...]] = {}
    for root in roots:
        for path in [root, *sorted(root.rglob("*"))] if root.is_dir() else [root]:
            status = path.lstat()
            row: tuple[object, ...] = (status.st_mode,)
            if path.is_symlink():
                row = (*row, str(path.readlink()))
            elif path.is_file():
                row = (*row, status.st_size, status.st_ino, status.st_mtime_ns)
            if not (path.name in ("lock", "last-build.log") and path.parent.name == ".envspec"):
                found[str(path)] = row
    return found


def report_of(*args: str | os.PathLike[str]) -> Report:
    """Call a command in this process, with `--json`, and read the report that it prints."""
    done = CliRunner().invoke(cli, [*(os.fspath(arg) for arg in args), "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return msgspec.json.decode(done.stdout, type=Report)
