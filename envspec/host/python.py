"""Interpreters of this machine: what one says of itself, and where pyenv keeps them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from envspec.report.errors import WorldError

_ASK = (
    "import json,os,platform,struct,sys,sysconfig;"
    "print(json.dumps({'version':platform.python_version(),'implementation':sys.implementation.name,"
    "'machine':platform.machine(),'path':os.path.realpath(sys.executable),"
    "'base':os.path.realpath(getattr(sys,'_base_executable',sys.executable)),"
    "'headers':os.path.exists(os.path.join(sysconfig.get_path('include'),'Python.h'))}))"
)


class ChosenPython(msgspec.Struct, frozen=True, kw_only=True):
    """An interpreter that was run and asked. `headers` tells whether Python.h is there (JITs compile against it)."""

    version: str
    implementation: str
    machine: str
    path: Path
    headers: bool

    @property
    def minor(self) -> str:
        """`3.12`."""
        return ".".join(self.version.split(".")[:2])


def ask(path: Path) -> ChosenPython:
    """Run an interpreter and ask it what it is. Raises WorldError `python-broken`."""
    try:
        answer = subprocess.run(
            [str(path), "-I", "-c", _ASK],
            capture_output=True,
            timeout=30,
            stdin=subprocess.DEVNULL,
            check=True,
        )
        facts = msgspec.json.decode(answer.stdout, type=dict[str, object])
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it does not answer as a Python does"
        raise WorldError(
            "python-broken",
            f"{path} is not a working Python",
            where=str(path),
            why=reason or str(error),
            fix="name another interpreter: --python PATH",
        ) from None
    return ChosenPython(
        version=str(facts["version"]),
        implementation=str(facts["implementation"]),
        machine=str(facts["machine"]),
        path=Path(str(facts["base"])),
        headers=facts["headers"] is True,
    )


def pyenv_directories(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """pyenv's interpreters are on PATH only through shims, most of which refuse to run; these are the real ones."""
    root = Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME", "/nonexistent")) / ".pyenv")
    try:
        return tuple(sorted(root.glob("versions/*/bin")))
    except OSError:
        return ()


def minor_of(version: str) -> str:
    return ".".join(version.split(".")[:2])
