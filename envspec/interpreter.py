"""Choosing the Python of an environment: the best interpreter found in the profile's range."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from envspec.errors import UsageError, WorldError
from envspec.profile import Profile
from envspec.uv import Interpreter, Uv

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


def choose_python(profile: Profile, uv: Uv, cwd: Path, *, wanted: str | None = None) -> ChosenPython:
    """The interpreter for a profile; `wanted` (a path, or a version such as `3.11`) overrides the preference.

    Order: the preferred minor, then newer minors before older ones; within a minor one with Python.h, then the newest
    patch. Raises UsageError `no-python`.
    """
    if wanted and os.sep in wanted:
        return _checked(profile, ask(Path(wanted)), wanted)
    admitted = SpecifierSet(profile.python.versions)
    candidates: dict[Path, Interpreter] = {}
    for found in uv.interpreters(pyenv_directories(os.environ), cwd):
        # pyenv's shims change their meaning with the directory they are called in.
        if admitted.contains(found.version, prereleases=False) and "shims" not in found.path.parts:
            candidates.setdefault(Path(os.path.realpath(found.path)), found)
    if wanted:
        candidates = {p: f for p, f in candidates.items() if f"{f.version}.".startswith(f"{wanted}.")}
    ranked = sorted(candidates.items(), key=lambda item: _rank(item[1], profile.python.prefer))
    best: ChosenPython | None = None
    for path, found in ranked:
        if best is not None and _minor(found.version) != best.minor:
            break
        try:
            chosen = ask(path)
        except WorldError:
            continue
        if chosen.headers:
            return chosen
        best = best or chosen
    if best is not None:
        return best
    raise UsageError(
        "no-python",
        f"no Python {wanted or profile.python.versions} was found",
        where=f"{profile.path}: python.versions",
        why="looked on PATH, in uv's own interpreters and in pyenv's",
        fix=f"install one (uv python install {profile.python.prefer}) or pass --python PATH",
    )


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
        raise WorldError(
            "python-broken", f"{path} is not a working Python", where=str(path), why=str(error)
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


def _checked(profile: Profile, chosen: ChosenPython, wanted: str) -> ChosenPython:
    fits = SpecifierSet(profile.python.versions).contains(chosen.version, prereleases=True)
    if chosen.implementation != "cpython" or not fits:
        raise UsageError(
            "python-outside-range",
            f"{wanted} is {chosen.implementation} {chosen.version}, the profile admits CPython {profile.python.versions}",
            where="--python",
            fix="name another interpreter, or widen python.versions and lock again",
        )
    return chosen


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _rank(found: Interpreter, prefer: str) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
    try:
        release = Version(found.version).release
    except InvalidVersion:
        release = (0,)
    return (_minor(found.version) != prefer, tuple(-n for n in release[:2]), tuple(-n for n in release[2:]))
