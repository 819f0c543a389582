"""Choosing the Python of an environment: the best interpreter found in the profile's range."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
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


_VERSION = re.compile(r"3(\.\d{1,3}){0,2}")


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
    if wanted and not _VERSION.fullmatch(wanted):
        return _named(profile, wanted, os.fspath(uv.env.get("PATH", "")))
    admitted = SpecifierSet(profile.python.versions)
    candidates: dict[Path, Interpreter] = {}
    for found in uv.interpreters(pyenv_directories(os.environ), cwd):
        if admitted.contains(found.version, prereleases=False):
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
    if wanted and _minor(wanted) not in profile.python.minors:
        raise _outside(profile, f"Python {wanted}")
    raise UsageError(
        "no-python",
        f"no Python {wanted or profile.python.versions} was found",
        where="--python" if wanted else f"{profile.path}: python.versions",
        why="looked on PATH, in uv's own interpreters and in pyenv's",
        fix=f"install one (uv python install {wanted or profile.python.prefer}) or pass --python PATH",
    )


def _named(profile: Profile, wanted: str, path: str) -> ChosenPython:
    """The interpreter that the user names by its path, or by a command such as `python3.11`."""
    found = wanted if os.sep in wanted else shutil.which(wanted, path=path)
    if found is None:
        raise UsageError(
            "no-python",
            f"there is no Python {wanted!r}",
            where="--python",
            fix="name a version such as 3.12, a command on PATH or the path of an interpreter",
        )
    try:
        chosen = ask(Path(found))
    except WorldError as error:
        raise UsageError(error.code, error.what, where="--python", why=error.why, fix=error.fix) from None
    if chosen.implementation != "cpython" or not SpecifierSet(profile.python.versions).contains(
        chosen.version, prereleases=True
    ):
        raise _outside(profile, f"{wanted} is {chosen.implementation} {chosen.version}, which")
    return chosen


def _outside(profile: Profile, what: str) -> UsageError:
    return UsageError(
        "python-outside-range",
        f"{what} is not a CPython that the profile admits",
        where="--python",
        why=f"python.versions of {profile.path} is {profile.python.versions}",
        fix="name another interpreter, or widen python.versions and lock again",
    )


def resolving_python(profile: Profile, uv: Uv) -> Path:
    """An interpreter that uv can resolve the profile with: envspec's own where the profile admits it, else the chosen one."""
    if SpecifierSet(profile.python.versions).contains(platform.python_version(), prereleases=True):
        return Path(sys.executable)
    return choose_python(profile, uv, Path("/")).path


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


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _rank(found: Interpreter, prefer: str) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
    try:
        release = Version(found.version).release
    except InvalidVersion:
        release = (0,)
    return (_minor(found.version) != prefer, tuple(-n for n in release[:2]), tuple(-n for n in release[2:]))
