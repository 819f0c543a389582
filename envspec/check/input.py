"""What is checked: a profile, a lock for it, and the Python it is for."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from envspec.check.facts import CheckInput
from envspec.host.python import ask
from envspec.lock import Lock, read_lock
from envspec.lock.dates import named_in
from envspec.lock.resolve import resolve
from envspec.lock.targets import Target
from envspec.profile import Profile
from envspec.report.errors import UsageError
from envspec.report.progress import Progress
from envspec.uv.run import Uv
from envspec.venv.interpreter import resolving_python


def target_of(profile: Profile, python: str | None) -> Target:
    """Return what to check for: the interpreter or minor that was named, else the preferred minor, on this machine.

    No interpreter has to be there: a check installs nothing.
    """
    if python and os.sep in python:
        found = ask(Path(python))
        return Target(found.version, found.machine)
    machine = platform.machine()
    return Target(
        python or profile.python.prefer, machine if machine in profile.machines else profile.machines[0]
    )


def read_input(profile: Profile, uv: Uv, progress: Progress, *, frozen: bool = False) -> CheckInput:
    """Return the lock of a profile, or what a new one would hold: a check writes nothing.

    Where the resolver has no set at all, one in which the profile's pins win is checked, to say what does not fit.
    Raises UsageError `lock-missing` if a lock is insisted on (`frozen`), and what resolving raises.
    """
    kept = read_lock(profile.lock_path)
    if kept is not None and (frozen or kept.profile_digest == profile.lock_digest):
        return CheckInput(profile, kept, kept.profile_digest)
    if frozen:
        raise UsageError("lock-missing", f"there is no lock {profile.lock_path}", where="--frozen")
    with progress.stage("lock") as stage:
        found, refusal = _resolve(profile, uv.with_reporter(stage.detail), kept)
        stage.result = f"{len(found.packages)} packages, resolved for this check alone"
    return CheckInput(profile, found, kept.profile_digest if kept else "", refusal)


def _resolve(profile: Profile, uv: Uv, kept: Lock | None) -> tuple[Lock, UsageError | None]:
    python = resolving_python(profile, uv)
    try:
        return resolve(profile, uv, python, keep=kept).lock, None
    except UsageError as refusal:
        if refusal.code not in ("unsatisfiable", "no-such-version", "newer-than-date"):
            raise
        for winning in _suspects(profile, refusal):
            try:
                return resolve(profile, uv, python, keep=kept, pins_win=winning).lock, refusal
            except UsageError:
                continue
        raise refusal from None


def _suspects(profile: Profile, refusal: UsageError) -> Iterator[tuple[str, ...]]:
    """Yield which exact pins of the profile to let win: each that uv's reason names, alone, then all of them."""
    pins = [p.name for p in profile.packages if p.specifier.startswith("==")]
    named = [name for name in pins if named_in(f"{refusal.what}\n{refusal.why}", name)]
    # What the profile alone insists on contradicts the others; what is asked for twice is the likelier culprit.
    yield from (
        (name,) for name in sorted(named, key=lambda name: -refusal.why.count(f"depends on {name}=="))
    )
    yield tuple(pins)
