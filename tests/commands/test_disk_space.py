"""A full disk is foreseen: refused where it surely does not fit, warned where it may not, silent otherwise."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envspec.lock import LockedFile, LockedPackage
from envspec.report.errors import ExternalError
from envspec.uv.run import Uv
from envspec.venv import disk_space
from tests.support import needs
from tests.support.command import on_disk
from tests.support.disk import small_disk
from tests.support.site import PACKAGES, WINNERS, TrustSite
from tests.support.texts import without_more
from tests.support.wheels import make_wheel


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> TrustSite:
    """A profile with a package of 4 MB that packs to a hundredth, and one of 1 MB that does not pack at all."""
    site = TrustSite(tmp_path_factory.mktemp("disk space"))
    make_wheel(site.root / "wheels", "big", "1.0", {"big.bin": bytes(4_000_000)})
    noise = random.Random(1).randbytes(1_000_000)
    make_wheel(site.root / "wheels", "noise", "1.0", {"noise.bin": noise})
    site.profile("big", PACKAGES + 'big = "1.0"\nnoise = "1.0"\n', WINNERS)
    return site


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", request.param) as at:
        yield at


def build(site: TrustSite, out: Path, **env: str) -> tuple[int, str]:
    done = site.call("build", "--python", sys.executable, "big.toml", "--out", out, env=env)
    return done.code, without_more(done.err)


@needs.mounts()
@pytest.mark.parametrize("disk", ["3m"], indirect=True)
def test_copies_that_do_not_fit_are_refused_before_anything_is_installed(site: TrustSite, disk: Path) -> None:
    code, err = build(site, disk / "out")
    assert code == 3
    assert "install   failed after 0." in err
    assert (
        f"error[disk-too-small]: the environment needs 5.0 MB more in {disk / 'out'}, where 3.1 MB are free\n"
        f"  {disk / 'out'}\n"
        "  fix: free space (envspec gc, uv cache prune), or name another place: --out, UV_CACHE_DIR\n"
    ) in err
    assert (
        not list((disk / "out/.envspec/generations").iterdir()) and not (disk / "out/.envspec/work").exists()
    )


@needs.mounts()
@pytest.mark.parametrize("disk", ["3m"], indirect=True)
def test_an_empty_cache_that_cannot_take_the_wheels_is_named(
    site: TrustSite, disk: Path, tmp_path: Path
) -> None:
    code, err = build(
        site, tmp_path / "out", UV_CACHE_DIR=str(disk / "uv"), ENVSPEC_CACHE_DIR=str(tmp_path / "c")
    )
    assert code == 3 and f"needs 5.0 MB more in {disk / 'uv'}, where 3.1 MB are free\n" in err


@needs.mounts()
@pytest.mark.parametrize("disk", ["3m"], indirect=True)
def test_a_cache_that_only_uv_knows_of_is_named_too(site: TrustSite, disk: Path, tmp_path: Path) -> None:
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv/uv.toml").write_text(f'cache-dir = "{disk}/elsewhere"\n')
    code, err = build(
        site, tmp_path / "out", XDG_CONFIG_HOME=str(tmp_path), ENVSPEC_CACHE_DIR=str(tmp_path / "c")
    )
    assert code == 3 and f"needs 5.0 MB more in {disk}/elsewhere, where 3.1 MB are free\n" in err


@needs.mounts()
@pytest.mark.parametrize("disk", ["8m"], indirect=True)
def test_both_on_one_small_disk(site: TrustSite, disk: Path) -> None:
    """Links need no second copy; copies do."""
    cache = str(disk / "uv")
    code, err = build(site, disk / "out", UV_CACHE_DIR=cache, UV_LINK_MODE="copy")
    assert code == 3 and re.search(r"needs 10\.\d MB more in .*/out, where [78]\.\d MB are free", err)
    assert build(site, disk / "out", UV_CACHE_DIR=cache)[0] == 0


@needs.mounts()
@pytest.mark.parametrize("disk", ["3m"], indirect=True)
def test_what_is_in_the_cache_already_may_be_linked(site: TrustSite, disk: Path) -> None:
    """The cache is not empty, so what is missing in it is not known: a warning, and then what happens."""
    assert site.call("build", "--python", sys.executable, "good.toml", "--out", disk / "out",
                     env={"UV_CACHE_DIR": str(disk / "uv")}).code == 0  # fmt: skip
    before = on_disk(disk / "out")
    code, err = build(site, disk / "out", UV_CACHE_DIR=str(disk / "uv"))
    assert code == 3
    assert re.search(r"warning: the environment may need 5\.\d MB more in", err) and "error[disk-full]" in err
    assert "No space left on device (os error 28)" in err
    assert err.splitlines()[-1] == (
        "  fix: free space in the output directory and in uv's cache (uv cache prune), or name another --out"
    )
    after = on_disk(disk / "out")
    assert {p: r for p, r in after.items() if len(r) > 1} == {p: r for p, r in before.items() if len(r) > 1}


@needs.mounts()
@pytest.mark.parametrize("disk", ["16m"], indirect=True)
def test_enough_room_says_nothing(site: TrustSite, disk: Path) -> None:
    code, err = build(site, disk / "out")
    assert code == 0 and "warning: the environment may need" not in err


def test_wheels_nobody_looked_into_count_as_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSPEC_CACHE_DIR", str(tmp_path / "none"))
    file = LockedFile("a-1-py3-none-any.whl", "0" * 64, 1000)
    assert disk_space.size_of(file) == disk_space.Size(1000, 2200)
    package = LockedPackage(name="a", version="1", marker="", files=(file,))
    monkeypatch.setattr(disk_space, "_free", lambda path: 1500)
    uv = Uv(base_env={"UV_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""})
    told: list[str] = []
    disk_space.require_disk_space([(package, file)], tmp_path / "out", uv, told.append)
    assert len(told) == 1 and told[0].startswith("warning: the environment may need 0.0 MB more in")
    monkeypatch.setattr(disk_space, "_free", lambda path: 999)
    with pytest.raises(ExternalError) as caught:
        disk_space.require_disk_space([(package, file)], tmp_path / "out", uv, told.append)
    assert caught.value.code == "disk-too-small"
