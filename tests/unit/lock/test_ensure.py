"""What may happen to a lock: kept, made, changed, refused, and written last."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from envspec.lock import Lock, LockedFile, LockedPackage, read_lock
from envspec.lock import ensure as ensure_module
from envspec.lock.ensure import (
    LockMode,
    LockOutcome,
    LockPolicy,
    describe_lock,
    ensure_lock,
    lock_notes,
    lock_on_disk,
)
from envspec.lock.graph import Graph
from envspec.lock.resolve import Resolution
from envspec.lock.text import write_lock
from envspec.profile import Profile, read_profile
from envspec.report.errors import UsageError
from envspec.uv.run import Uv

LATER = LockPolicy(upgrade=(), written_last=True)
PROFILE = """\
[gpu]
arch = "12.0a"
minimum-driver = "580.65.06"
[python]
versions = ">=3.10,<3.13"
prefer = "3.12"
[packages]
app = ">=1"
"""


def lock(version: str, profile: Profile) -> Lock:
    file = LockedFile(f"app-{version}-py3-none-any.whl", version[0] * 64)
    package = LockedPackage(name="app", version=version, marker="", files=(file,), via=("profile",))
    return Lock(
        profile_name="p.toml", profile_digest=profile.lock_digest, python=">=3.10", machines=("x86_64",),
        exclude_newer="", overrides=(), packages=(package,),
    )  # fmt: skip


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    path = tmp_path / "p.toml"
    path.write_text(PROFILE)
    return read_profile(path)


@pytest.fixture
def ensured(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str] | None]:
    """A resolution always gives 2.0. The list says what each one was to upgrade."""
    upgrades: list[Sequence[str] | None] = []

    def resolve(*args: object, upgrade: Sequence[str] | None, **options: object) -> Resolution:
        upgrades.append(upgrade)
        return Resolution(lock=lock("2.0", profile), graph=Graph((), ()), metadata={})

    monkeypatch.setattr(ensure_module, "resolve", resolve)
    return upgrades


def ensure(profile: Profile, policy: LockPolicy) -> LockOutcome:
    return ensure_lock(profile, Uv(), Path("/python"), policy)


def on_disk(profile: Profile) -> str | None:
    found = read_lock(profile.lock_path)
    return found.packages[0].version if found else None


def test_a_lock_that_matches_is_kept(profile: Profile, ensured: list[Sequence[str] | None]) -> None:
    write_lock(profile.lock_path, lock("1.0", profile))
    outcome = ensure(profile, LockPolicy())
    assert (outcome.action, outcome.changes, outcome.written) == ("kept", (), True)
    assert ensured == [] and describe_lock(outcome) == "lock unchanged" and lock_notes(outcome) == []


def test_a_lock_is_made_and_written(profile: Profile, ensured: list[Sequence[str] | None]) -> None:
    outcome = ensure(profile, LockPolicy())
    assert (outcome.action, outcome.changes, on_disk(profile)) == ("made", (), "2.0")
    assert describe_lock(outcome) == "lock made"


def test_an_upgrade_is_shown_and_written(profile: Profile, ensured: list[Sequence[str] | None]) -> None:
    write_lock(profile.lock_path, lock("1.0", profile))
    outcome = ensure(profile, LockPolicy(upgrade=("App",)))
    assert (outcome.action, on_disk(profile), ensured) == ("changed", "2.0", [["app"]])
    assert describe_lock(outcome) == "lock changed (1 package)"
    assert lock_notes(outcome) == ["  ~ app 1.0 -> 2.0"]


@pytest.mark.parametrize(
    ("mode", "locked", "code"),
    [
        (LockMode.LOCKED, False, "lock-missing"),
        (LockMode.LOCKED, True, "lock-outdated"),
        (LockMode.FROZEN, False, "lock-missing"),
    ],
)
def test_a_mode_that_writes_nothing(
    profile: Profile, ensured: list[Sequence[str] | None], mode: LockMode, locked: bool, code: str
) -> None:
    if locked:
        write_lock(profile.lock_path, lock("1.0", profile))
        profile.path.write_text(PROFILE.replace(">=1", ">=2"))
    with pytest.raises(UsageError) as caught:
        ensure(read_profile(profile.path), LockPolicy(mode=mode))
    assert caught.value.code == code and ensured == []


def test_a_frozen_lock_is_taken_as_it_is(profile: Profile, ensured: list[Sequence[str] | None]) -> None:
    write_lock(profile.lock_path, lock("1.0", profile))
    profile.path.write_text(PROFILE.replace(">=1", ">=2"))
    assert ensure(read_profile(profile.path), LockPolicy(mode=LockMode.FROZEN)).action == "kept"


def test_a_lock_that_is_written_last(profile: Profile, ensured: list[Sequence[str] | None]) -> None:
    write_lock(profile.lock_path, lock("1.0", profile))
    outcome = ensure(profile, LATER)
    assert (outcome.written, outcome.installs_the_same, on_disk(profile)) == (False, False, "1.0")
    assert describe_lock(outcome) == "1 changed" and lock_notes(outcome) == []
    with lock_on_disk(profile, outcome):
        assert on_disk(profile) == "2.0"
    assert on_disk(profile) == "2.0"
    assert ensure(profile, LATER).installs_the_same


@pytest.mark.parametrize("before", [None, "1.0"])
def test_a_publication_that_fails_leaves_the_old_lock(
    profile: Profile, ensured: list[Sequence[str] | None], before: str | None
) -> None:
    if before is not None:
        write_lock(profile.lock_path, lock(before, profile))
    with pytest.raises(KeyboardInterrupt), lock_on_disk(profile, ensure(profile, LATER)):
        raise KeyboardInterrupt
    assert on_disk(profile) == before
