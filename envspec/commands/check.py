"""`envspec check`: may these live together?"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import msgspec

from envspec.check.facts import Target
from envspec.check.run import check_lock
from envspec.findings import Report
from envspec.interpreter import ask
from envspec.lock import Lock, read_lock
from envspec.lock.ensure import LockMode, ensure_lock
from envspec.profile import Profile, read_profile
from envspec.progress import Progress
from envspec.uv import Uv


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    profile: Path
    python: str | None = None
    offline: bool = False
    allowed: frozenset[str] = frozenset()


def target_of(profile: Profile, python: str | None) -> Target:
    """What to check for: the interpreter or minor that was named, else the preferred minor, on this machine.

    No interpreter has to be there: a check installs nothing.
    """
    if python and os.sep in python:
        found = ask(Path(python))
        return Target(found.version, found.machine)
    machine = platform.machine()
    return Target(
        python or profile.python.prefer, machine if machine in profile.machines else profile.machines[0]
    )


def load(profile_path: Path, uv: Uv, progress: Progress) -> tuple[Profile, Lock]:
    """A profile with its lock. A missing lock is made in memory only: a check writes nothing."""
    profile = read_profile(profile_path)
    lock = read_lock(profile.lock_path)
    if lock is None:
        with progress.stage("lock") as stage:
            uv.on_line = stage.detail
            lock = ensure_lock(profile, uv, Path(sys.executable), LockMode.UPDATE, write=False).lock
            stage.result = f"{len(lock.packages)} packages, resolved for this check; envspec lock keeps it"
    return profile, lock


def run_check(request: CheckRequest, progress: Progress) -> Report:
    """Check a profile's lock; the report has findings whatever they are, the caller makes the exit code."""
    uv = Uv(offline=request.offline)
    profile, lock = load(request.profile, uv, progress)
    target = target_of(profile, request.python)
    with progress.stage("check") as stage:
        found = check_lock(
            profile,
            lock,
            target,
            uv,
            Path(sys.executable),
            os.environ,
            allowed=request.allowed,
            on_progress=stage.detail,
        )
        stage.result = f"Python {target.python} on {target.machine}"
    return found
