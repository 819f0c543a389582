"""Interpreters of this machine: what one says of itself, and where pyenv keeps them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from envspec.host.commands import Command, run
from envspec.report.errors import ExternalError

_ASK = (
    "import json,os,platform,struct,sys,sysconfig;"
    "print(json.dumps({'version':platform.python_version(),'implementation':sys.implementation.name,"
    "'machine':platform.machine(),"
    "'base':os.path.realpath(getattr(sys,'_base_executable',sys.executable)),"
    "'headers':os.path.exists(os.path.join(sysconfig.get_path('include'),'Python.h'))}))"
)
_MOST_ANSWER = 1 << 20


class ChosenPython(msgspec.Struct, frozen=True, kw_only=True):
    """Describes an interpreter that was run and asked. `headers` tells whether Python.h is there (JITs compile against it)."""

    version: str
    implementation: str
    machine: str
    path: Path
    headers: bool

    @property
    def minor(self) -> str:
        """Return the Python minor: `3.12`."""
        return ".".join(self.version.split(".")[:2])


class _Answer(msgspec.Struct, frozen=True):
    """What an interpreter prints when it is asked."""

    version: str
    implementation: str
    machine: str
    base: str
    headers: bool


def ask(path: Path) -> ChosenPython:
    """Run an interpreter and ask it what it is. Raise ExternalError `python-broken`."""
    command = Command(arguments=(str(path), "-I", "-c", _ASK), environment=os.environ)
    try:
        done = run(command, seconds=30, limit=_MOST_ANSWER)
    except OSError as error:
        raise _broken(path, error.strerror or str(error)) from None
    try:
        answer = msgspec.json.decode(done.out, type=_Answer)
    except msgspec.DecodeError:
        raise _broken(path, "it does not answer as a Python does") from None
    return ChosenPython(
        version=answer.version,
        implementation=answer.implementation,
        machine=answer.machine,
        path=Path(answer.base),
        headers=answer.headers,
    )


def _broken(path: Path, reason: str) -> ExternalError:
    return ExternalError(
        "python-broken",
        f"{path} is not a working Python",
        where=str(path),
        why=reason,
        fix="name another interpreter: --python PATH",
    )


def pyenv_directories(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the directories of pyenv's interpreters: on PATH are only its shims, most of which refuse to run."""
    root = Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME", "/nonexistent")) / ".pyenv")
    try:
        return tuple(sorted(root.glob("versions/*/bin")))
    except OSError:
        return ()


def minor_of(version: str) -> str:
    """Return the minor of a Python version: `3.12` for `3.12.1`."""
    return ".".join(version.split(".")[:2])
