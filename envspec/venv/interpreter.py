"""Choosing the Python of an environment: the best interpreter found in the profile's range."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from envspec.host.python import ChosenPython, ask, minor_of, pyenv_directories
from envspec.profile import Profile
from envspec.report.errors import ExternalError, UsageError
from envspec.uv.run import Interpreter, Uv

_VERSION = re.compile(r"3(\.\d{1,3}){0,2}")


def choose_python(profile: Profile, uv: Uv, cwd: Path, *, wanted: str | None = None) -> ChosenPython:
    """Return the interpreter for a profile; `wanted` (a path, or a version such as `3.11`) overrides the preference.

    Order: the preferred minor, then newer minors before older ones; within a minor one with Python.h, then the newest
    patch. Raises UsageError `no-python`.
    """
    if wanted and not _VERSION.fullmatch(wanted):
        return _named(profile, wanted, os.fspath(uv.env.get("PATH", "")))
    admitted = SpecifierSet(profile.python.versions)
    candidates: dict[Path, Interpreter] = {}
    for found in uv.interpreters(pyenv_directories(uv.base_env), cwd):
        if admitted.contains(found.version, prereleases=False):
            candidates.setdefault(Path(os.path.realpath(found.path)), found)
    if wanted:
        candidates = {p: f for p, f in candidates.items() if f"{f.version}.".startswith(f"{wanted}.")}
    ranked = sorted(candidates.items(), key=lambda item: _rank(item[1], profile.python.prefer))
    best: ChosenPython | None = None
    for path, found in ranked:
        if best is not None and minor_of(found.version) != best.minor:
            break
        try:
            chosen = ask(path)
        except ExternalError:
            continue
        if chosen.headers:
            return chosen
        best = best or chosen
    if best is not None:
        return best
    if wanted and minor_of(wanted) not in profile.python.minors:
        raise _outside(profile, f"Python {wanted}")
    raise UsageError(
        "no-python",
        f"no Python {wanted or profile.python.versions} was found",
        where="--python" if wanted else f"{profile.path}: python.versions",
        why="looked on PATH, in uv's own interpreters and in pyenv's",
        fix=f"install one (uv python install {wanted or profile.python.prefer}) or pass --python PATH",
    )


def _named(profile: Profile, wanted: str, path: str) -> ChosenPython:
    """Return the interpreter that the user names by its path, or by a command such as `python3.11`."""
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
    except ExternalError as error:
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
    """Return an interpreter for uv's resolutions: envspec's own where the profile admits it, else the chosen one."""
    if SpecifierSet(profile.python.versions).contains(platform.python_version(), prereleases=True):
        return Path(sys.executable)
    return choose_python(profile, uv, Path("/")).path


def _rank(found: Interpreter, prefer: str) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
    try:
        release = Version(found.version).release
    except InvalidVersion:
        release = (0,)
    return (minor_of(found.version) != prefer, tuple(-n for n in release[:2]), tuple(-n for n in release[2:]))
