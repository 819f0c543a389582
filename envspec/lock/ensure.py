"""Having a lock that matches its profile: keeping it, making it, or making it again and showing the change."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envspec.lock.model import Lock, LockChange, compare
from envspec.lock.resolve import resolve
from envspec.lock.text import read_lock, render_lock, write_lock
from envspec.profile import Profile
from envspec.report.errors import EnvspecError, UsageError
from envspec.uv.run import Uv


class LockMode(Enum):
    """What may happen to a lock; the names mean what they mean in uv."""

    UPDATE = "update"
    LOCKED = "locked"
    FROZEN = "frozen"


class LockOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The lock to use, and what was done to the file: `kept`, `made` or `changed`."""

    lock: Lock
    action: str
    changes: tuple[LockChange, ...] = ()


def ensure_lock(
    profile: Profile,
    uv: Uv,
    python: Path,
    mode: LockMode = LockMode.UPDATE,
    upgrade: Sequence[str] | None = None,
    *,
    write: bool = True,
) -> LockOutcome:
    """The profile's lock, brought up to date as far as `mode` allows; on disk too unless `write` is false.

    Raises UsageError `lock-missing` or `lock-outdated` where the mode forbids to write.
    """
    old = read_lock(profile.lock_path)
    if upgrade is not None:
        upgrade = [canonicalize_name(name) for name in upgrade]
    matches = old is not None and old.profile_digest == profile.lock_digest
    if old is not None and upgrade is None and (matches or mode is LockMode.FROZEN):
        return LockOutcome(lock=old, action="kept")
    if mode is not LockMode.UPDATE:
        raise _forbidden(profile, old, mode)
    unknown = sorted(set(upgrade or ()) - {p.name for p in old.packages}) if old else []
    if unknown:
        raise UsageError("unknown-package", f"{unknown[0]} is not in the lock", where="--upgrade-package")
    new = resolve(profile, uv, python, keep=old, upgrade=upgrade).lock
    if write:
        write_lock(profile.lock_path, new)
    if old is None:
        return LockOutcome(lock=new, action="made")
    action = "kept" if render_lock(old) == render_lock(new) else "changed"
    return LockOutcome(lock=new, action=action, changes=compare(old, new))


def _forbidden(profile: Profile, old: Lock | None, mode: LockMode) -> EnvspecError:
    if old is None:
        return UsageError(
            "lock-missing",
            f"there is no lock {profile.lock_path}",
            where=f"--{mode.value}",
            fix=f"make it: envspec lock {shlex.quote(str(profile.path))}",
        )
    return UsageError(
        "lock-outdated",
        f"{profile.lock_path} was made from another version of the profile",
        where=f"--{mode.value}",
        fix=f"make it again: envspec lock {shlex.quote(str(profile.path))}",
    )


def describe_lock(outcome: LockOutcome) -> str:
    """`lock unchanged`, `lock made`, `lock changed (3 packages)`."""
    if outcome.action == "kept":
        return "lock unchanged"
    if outcome.action == "made":
        return "lock made"
    number = len(outcome.changes)
    return f"lock changed ({number} package{'' if number == 1 else 's'})"


def lock_notes(outcome: LockOutcome) -> list[str]:
    """What a new lock differs in, and why it overrides what packages ask for."""
    if outcome.action == "kept":
        return []
    lines = [f"  {change}" for change in outcome.changes]
    for override in outcome.lock.overrides:
        lines.append(f"  override {override.name}=={override.version}: {override.reason}")
        lines += [f"    {path}" for path in override.dependency_paths]
    return lines
