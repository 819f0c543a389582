"""What is kept between two checks, and what is asked again: facts by hash for ever, addresses and notices of an index not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envspec.check.collect import collect_facts
from envspec.check.facts import CheckInput, IndexNotices
from envspec.check.input import read_input
from envspec.check.run import check_profile
from envspec.cli.progress import make_progress
from envspec.lock.ensure import ensure_lock
from envspec.lock.targets import Target
from envspec.profile import Profile, read_profile
from envspec.report.findings import Finding, Report, Severity
from envspec.report.rules import Missing
from envspec.uv.run import Uv
from envspec.wheels.file import SetContents
from tests.support.index import LoopbackIndex, serve_index
from tests.support.wheels import make_wheel

PROFILE = '[gpu]\narch = "12.0a"\n[packages]\napp = "1"\n'
TARGET = Target("3.12", "x86_64")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LoopbackIndex]:
    """An index with one package, and what it requires."""
    make_wheel(tmp_path / "wheels", "app", "1", requires=["lib>=1"])
    make_wheel(tmp_path / "wheels", "lib", "1")
    with serve_index(tmp_path / "wheels") as running:
        yield running


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("ENVSPEC_CACHE_DIR", str(cache))
    return cache


@pytest.fixture
def profile(
    tmp_path: Path, own_cache: Path, index: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> Profile:
    """A locked profile that names no index of its own: the user's is the loopback one."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    path = tmp_path / "p.toml"
    path.write_text(PROFILE, encoding="utf-8")
    made = read_profile(path)
    ensure_lock(made, Uv(), Path(sys.executable))
    return made


def check(profile: Profile, *, offline: bool = False) -> Report:
    return check_profile(profile, Uv(offline=offline), {"PATH": "/usr/bin:/bin"}, make_progress())


def of(found: Report, code: str) -> list[Finding]:
    return [one for one in found.findings if one.code == code]


def undecided(found: Report) -> set[str]:
    return {f.code for f in found.findings if f.severity is Severity.UNKNOWN} - {"torch-abi", "host-compiler"}


def an_hour_later(cache: Path) -> None:
    for path in (cache / "notices").iterdir():
        then = path.stat().st_mtime - 3601
        os.utime(path, (then, then))


def test_a_second_check_asks_nobody(profile: Profile, index: LoopbackIndex) -> None:
    first = check(profile)
    index.asked.clear()
    assert check(profile) == first
    assert index.asked == []


def test_a_release_that_is_yanked_later_is_reported_within_an_hour(
    profile: Profile, index: LoopbackIndex, own_cache: Path
) -> None:
    assert of(check(profile), "yanked") == []
    index.yanked["lib-1-py3-none-any.whl"] = "it forgets things"
    an_hour_later(own_cache)
    (found,) = of(check(profile), "yanked")
    assert (found.severity, found.subject, found.message) == (
        Severity.WARNING,
        "lib",
        "lib 1 was yanked from the index",
    )
    assert found.evidence == ('reason: "it forgets things"',)
    assert found.dependency_paths == ("lib 1 <- app 1 (>=1) <- your profile",)
    assert found.fix == f"take another release: envspec lock {profile.path} --upgrade-package lib"
    index.yanked.clear()
    an_hour_later(own_cache)
    assert of(check(profile), "yanked") == []


def test_a_release_that_is_gone_is_known_by_what_was_kept_of_it(
    profile: Profile, index: LoopbackIndex, own_cache: Path
) -> None:
    first = check(profile)
    index.gone.add("lib-1-py3-none-any.whl")
    an_hour_later(own_cache)
    assert undecided(check(profile)) == undecided(first) | {"yanked"}


def test_the_same_lock_is_checked_against_another_mirror(
    profile: Profile, index: LoopbackIndex, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the first mirror is asked again, not even where it is the only one whose address was ever kept."""
    check(profile)
    for kept in ("metadata", "look-6"):
        for path in (own_cache / kept).iterdir():
            path.unlink()
    with serve_index(tmp_path / "wheels") as mirror:
        monkeypatch.setenv("UV_DEFAULT_INDEX", mirror.url)
        index.asked.clear()
        found = check(profile)
        assert undecided(found) == set()
        assert any(path.startswith("/files/") for path in mirror.asked)
    assert index.asked == []


def test_a_mirror_that_lacks_a_file_is_named_as_the_reason(
    profile: Profile, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has another file of the same name: its hash is not the locked one, so it is not looked at."""
    make_wheel(tmp_path / "other", "app", "1", requires=["lib>=1"])
    make_wheel(tmp_path / "other", "lib", "1", {"lib.py": "other = True\n"})
    with serve_index(tmp_path / "other") as mirror:
        monkeypatch.setenv("UV_DEFAULT_INDEX", mirror.url)
        facts = collect_facts(read_input(profile, Uv(), make_progress()), TARGET, Uv(), Path(sys.executable))
    missing = facts[SetContents]
    assert isinstance(missing, Missing)
    assert missing.why == "the index has no lib-1-py3-none-any.whl with the hash that is locked"
    assert facts[IndexNotices] == IndexNotices({})


def test_without_a_network_what_was_kept_is_enough(
    profile: Profile, index: LoopbackIndex, own_cache: Path
) -> None:
    first = check(profile)
    an_hour_later(own_cache)
    index.asked.clear()
    assert check(profile, offline=True) == first
    assert index.asked == []


def test_two_directories_of_the_same_wheels(tmp_path: Path, own_cache: Path) -> None:
    """One lock, two places: the second is never asked for an address that is of the first."""
    for name in ("first", "second"):
        make_wheel(tmp_path / name, "app", "1")
    text = PROFILE + '[[index]]\nname = "local"\nurl = "first"\nformat = "flat"\ndefault = true\n'
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    first = read_profile(path)
    uv = Uv(offline=True)
    ensure_lock(first, uv, Path(sys.executable))
    given = read_input(first, uv, make_progress())
    for wheel in (tmp_path / "first").iterdir():
        wheel.unlink()
    path.write_text(text.replace('"first"', '"second"'), encoding="utf-8")
    moved = CheckInput(read_profile(path), given.lock)
    facts = collect_facts(moved, TARGET, uv, Path(sys.executable))
    assert isinstance(facts[SetContents], SetContents) and facts[IndexNotices] == IndexNotices({})


def test_a_damaged_note_of_the_index_is_asked_for_again(
    profile: Profile, index: LoopbackIndex, own_cache: Path
) -> None:
    first = check(profile)
    for path in (own_cache / "notices").iterdir():
        path.write_bytes(b"\x00{")
    assert check(profile) == first
