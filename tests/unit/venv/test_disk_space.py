"""How large an environment will be, before anything of it is there."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.lock import Lock, LockedFile, LockedPackage
from envspec.lock.text import write_lock
from envspec.profile import Profile
from envspec.venv.disk_space import size_of_environment

FIRST_PROFILE = 9_000_000_000


def lock(profile: Profile, *packages: LockedPackage) -> Lock:
    return Lock(
        profile_name=profile.path.name, profile_digest=profile.lock_digest, python=profile.python.versions,
        machines=(platform.machine(),), exclude_newer="", overrides=(), packages=packages,
    )  # fmt: skip


def package(name: str, size: int, marker: str = "") -> LockedPackage:
    file = LockedFile(f"{name}-1-py3-none-any.whl", "0" * 64, size)
    return LockedPackage(name=name, version="1", marker=marker, files=(file,))


def test_by_the_lock_for_this_machine(
    tmp_path: Path, local_profile: Callable[..., Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVSPEC_CACHE_DIR", str(tmp_path / "none"))
    profile = local_profile('a = "1"')
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[platform.machine()]
    rows = (package("a", 1000), package("b", 500), package("c", 7000, f"platform_machine == '{other}'"))
    write_lock(profile.lock_path, lock(profile, *rows))
    assert size_of_environment(profile) == 2200 + 1100


def test_without_a_lock_as_the_first_profile(local_profile: Callable[..., Profile]) -> None:
    profile = local_profile('a = "1"')
    assert size_of_environment(None) == size_of_environment(profile) == FIRST_PROFILE
    profile.lock_path.write_text("no lock at all\n")
    assert size_of_environment(profile) == FIRST_PROFILE
