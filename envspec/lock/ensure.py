"""Having a lock that matches its profile: keeping it, making it, or making it again and showing the change."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envspec.lock.model import Lock, LockChange, compare
from envspec.lock.resolve import resolve
from envspec.lock.text import read_lock, render_lock, write_lock
from envspec.profile import Profile
from envspec.report.errors import EnvspecError, UsageError
from envspec.report.findings import counted
from envspec.uv.run import Uv


class LockMode(Enum):
    """Says what may happen to a lock; the names mean what they mean in uv."""

    UPDATE = "update"
    LOCKED = "locked"
    FROZEN = "frozen"


class LockPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Says what may happen to a lock, which versions are free, and when a new one is written.

    `upgrade` names the packages that get the newest version that the profile allows: None none, empty all.
    """

    mode: LockMode = LockMode.UPDATE
    upgrade: tuple[str, ...] | None = None
    written_last: bool = False
    """The lock stays as it is until the environment that is built from the new one becomes current."""


class LockOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the lock to use, and what was done to the file: `kept`, `made` or `changed`. `old` is the one that was there before.

    `written` is false if the file is still the old one: see `lock_on_disk`.
    """

    lock: Lock
    action: str
    old: Lock | None = None
    written: bool = True

    @property
    def changes(self) -> tuple[LockChange, ...]:
        """Return what the lock changes of the old one; nothing if there was none."""
        return compare(self.old, self.lock) if self.old is not None else ()

    @property
    def installs_the_same(self) -> bool:
        """Tell whether the old lock installs exactly the same files."""
        return self.old is not None and self.old.digest == self.lock.digest


def ensure_lock(
    profile: Profile,
    uv: Uv,
    python: Path,
    policy: LockPolicy = LockPolicy(),  # noqa: B008  (frozen)
) -> LockOutcome:
    """Return the profile's lock, brought up to date as far as the policy allows, and on disk unless the policy writes it last.

    Raises UsageError `lock-missing` or `lock-outdated` where a lock would have to be written and must not be, UsageError
    `unknown-package` for a package to upgrade that the lock does not have, and whatever the resolution fails with.
    """
    old = read_lock(profile.lock_path)
    upgrade = None if policy.upgrade is None else [canonicalize_name(name) for name in policy.upgrade]
    matches = old is not None and old.profile_digest == profile.lock_digest
    if old is not None and upgrade is None and (matches or policy.mode is LockMode.FROZEN):
        return LockOutcome(lock=old, action="kept", old=old)
    if policy.mode is not LockMode.UPDATE:
        raise _forbidden(profile, old, policy.mode)
    unknown = sorted(set(upgrade or ()) - {p.name for p in old.packages}) if old else []
    if unknown:
        raise UsageError("unknown-package", f"{unknown[0]} is not in the lock", where=str(profile.lock_path))
    new = resolve(profile, uv, python, keep=old, upgrade=upgrade).lock
    if not policy.written_last:
        write_lock(profile.lock_path, new)
    action = "made" if old is None else "kept" if render_lock(old) == render_lock(new) else "changed"
    return LockOutcome(lock=new, action=action, old=old, written=not policy.written_last)


@contextlib.contextmanager
def lock_on_disk(profile: Profile, outcome: LockOutcome) -> Iterator[None]:
    """Write a lock that was not written yet, and put the old one back if what is done inside fails."""
    if outcome.written:
        yield
        return
    path = profile.lock_path
    before = read_lock(path)
    write_lock(path, outcome.lock)
    try:
        yield
    except BaseException:
        if before is not None:
            write_lock(path, before)
        else:
            path.unlink(missing_ok=True)
        raise


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
    """Return `lock unchanged`, `lock made`, `lock changed (3 packages)`; of a lock that is not written yet, `3 changed`."""
    if not outcome.written:
        return f"{len(outcome.changes)} changed"
    if outcome.action == "changed":
        return f"lock changed ({counted(len(outcome.changes), 'package')})"
    return "lock made" if outcome.action == "made" else "lock unchanged"


def lock_notes(outcome: LockOutcome) -> list[str]:
    """Return what a lock that was written differs in, and why it overrides what packages ask for."""
    if outcome.action == "kept" or not outcome.written:
        return []
    lines = [f"  {change}" for change in outcome.changes]
    for override in outcome.lock.overrides:
        lines.append(f"  override {override.name}=={override.version}: {override.reason}")
        lines += [f"    {path}" for path in override.dependency_paths]
    return lines
