"""The environment digest: the same wherever, whenever and by whom; another one as soon as something counts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.site import PACKAGES, WINNERS, TrustSite, site_packages
from tests.support.wheels import make_wheel

CIRCUMSTANCES: dict[str, tuple[dict[str, str | None], str]] = {
    "another directory": ({}, ""),
    "copies": ({"UV_LINK_MODE": "copy"}, ""),
    "hard links": ({"UV_LINK_MODE": "hardlink"}, ""),
    "one installer": ({"UV_CONCURRENT_INSTALLS": "1"}, ""),
    "many installers": ({"UV_CONCURRENT_INSTALLS": "16"}, ""),
    "a cold cache": ({"UV_CACHE_DIR": "cold cache", "ENVSPEC_CACHE_DIR": "cold too"}, ""),
    "another mask": ({}, "os.umask(0o077)"),
    "an open mask, into copies": ({"UV_LINK_MODE": "copy"}, "os.umask(0)"),
    "one processor": ({}, "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"),
    "another time zone and language": (
        {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "LANG": "tr_TR.UTF-8"},
        "",
    ),
    "byte code written": ({"UV_COMPILE_BYTECODE": "1", "PYTHONDONTWRITEBYTECODE": None}, ""),
    "hash seed": ({"PYTHONHASHSEED": "7"}, ""),
}


@pytest.fixture(scope="module")
def digest(site: TrustSite) -> str:
    """Of the first build."""
    site.made("out")
    return site.digest("out")


@pytest.mark.parametrize("circumstance", CIRCUMSTANCES)
def test_the_same_wherever_and_by_whom(
    site: TrustSite, digest: str, tmp_path: Path, circumstance: str
) -> None:
    env, before = CIRCUMSTANCES[circumstance]
    env = {k: str(tmp_path / v) if v and k.endswith("_DIR") else v for k, v in env.items()}
    out = site.made(
        f"elsewhere/{circumstance}/a much longer name than the other one/out", env=env, before=before
    )
    assert site.digest(str(out)) == digest
    python = str(out / "venv" / "bin" / "python")
    os.spawnv(os.P_WAIT, python, [python, "-c", "import app, lib, tool"])  # which writes byte code
    assert site.call("verify", "--hash", "--out", out).code == 0
    done = site.call("build", "--python", sys.executable, "good.toml", "--out", out, "--expect", digest)
    assert (done.code, done.out.splitlines()[0]) == (0, "nothing to do: the environment is up to date")


def test_the_manifest_owns_every_file(site: TrustSite, digest: str) -> None:
    manifest = site.manifest("out")
    assert manifest.digest == digest
    owners = {row.path.rpartition("/")[2]: row.owner for row in manifest.files}
    assert owners["late.py"] == "app" and owners["hello"] == "tool" and owners["notes.txt"] == "tool"
    assert owners["pyvenv.cfg"] == "uv" and owners["zzzz_envspec_generation.pth"] == "envspec"
    shared = next(row for row in manifest.files if row.path.endswith("shared/__init__.py"))
    assert shared.owner == "second" and manifest.winners == (("shared/__init__.py", "second"),)
    on_disk = {
        path.relative_to(site.root / "out" / "venv").as_posix()
        for path in (site.root / "out" / "venv").rglob("*")
        if (path.is_file() or path.is_symlink()) and "__pycache__" not in path.parts
    }
    # rglob does not enter the link lib64
    assert {row.path for row in manifest.files} == on_disk
    assert json.loads((site.root / "out" / "envspec.json").read_text())["version"] == 1


def changed(site: TrustSite, name: str) -> str:
    site.made(f"changed {name}", f"{name}.toml")
    return site.digest(f"changed {name}")


def test_another_content_version_arch_variable_or_winner_is_another_digest(
    site: TrustSite, digest: str
) -> None:
    site.profile("version", PACKAGES.replace('app = "1.0"', 'app = "2.0"'), WINNERS)
    site.profile("winner", PACKAGES, WINNERS.replace("second", "first"))
    site.profile("variable", PACKAGES, WINNERS + '[environment]\nHF_HOME = "x"\n')
    arch = site.profile("arch", PACKAGES, WINNERS)
    arch.write_text(arch.read_text().replace('"12.0a"', '"9.0a"'))
    site.profile("less", PACKAGES.replace('tool = "1.0"\n', ""), WINNERS)
    found = {name: changed(site, name) for name in ("version", "winner", "variable", "arch", "less")}
    assert len({digest, *found.values()}) == 6, found


def test_one_changed_byte_in_a_wheel_is_another_digest(tmp_path: Path) -> None:
    one, other = TrustSite(tmp_path / "one"), TrustSite(tmp_path / "other")
    make_wheel(
        other.root / "wheels", "lib", "1.0", {"lib/__init__.py": "version = '1.0'\n", "lib/old.py": "#"}
    )
    one.made("out")
    other.made("out")
    assert one.digest("out") != other.digest("out")


def test_another_digest_than_expected_is_not_published(site: TrustSite, digest: str) -> None:
    site.profile("expecting", PACKAGES.replace('lib = "1.0"', 'lib = "2.0"'), WINNERS)
    site.made("expect")
    args = ("build", "--python", sys.executable, "--out", "expect", "--expect")
    done = site.call(*args, digest, "expecting.toml")
    assert done.code == 1
    assert "publish   failed after" in done.err
    assert "error[digest-differs]: the environment's digest is sha256:" in done.err
    assert f"  --expect {digest}\n" in done.err
    assert site.digest("expect") == digest
    assert [p.name for p in (site.root / "expect" / ".envspec" / "generations").iterdir()] == ["1"]
    done = site.call(*args, "sha256:" + "0" * 64, "good.toml")  # also where there is nothing to do
    assert done.code == 1 and f"the environment's digest is {digest}" in done.err
    done = site.call(*args, "abc", "good.toml")
    assert done.code == 2 and "error[digest-malformed]: 'abc' is not an environment digest" in done.err


def test_a_file_edited_in_the_cache_is_not_taken(site: TrustSite, tmp_path: Path) -> None:
    """uv links files out of its cache, so an edit in one environment is an edit in the cache."""
    env: dict[str, str | None] = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_LINK_MODE": "hardlink"}
    out = site.made("edited", env=env)
    path = site_packages(out) / "app" / "late.py"
    digest = site.digest("edited")
    with path.open("r+b") as file:
        file.write(b"evil")
    later = path.stat().st_mtime + 3600
    os.utime(path, (later, later))
    done = site.call("build", "--python", sys.executable, "good.toml", "--out", "edited 2", env=env)
    assert done.code == 1
    assert "error[install-corrupt]: " in done.err
    assert "app/late.py is not the file that its wheel brought" in done.err
    assert "build again: uv cache clean app\n" in done.err
    assert not (site.root / "edited 2" / "current").exists()
    assert site.call("repair", "--out", "edited", "--profile", "good.toml", env=env).code == 0
    assert path.read_text() == "late = '1.0'\n"
    assert site.digest(str(site.made("edited 2", env=env))) == digest


def test_a_file_that_the_cache_has_lost_is_missed(site: TrustSite, tmp_path: Path) -> None:
    env: dict[str, str | None] = {"UV_CACHE_DIR": str(tmp_path / "cache")}
    site.made("lost", env=env)
    (kept,) = (tmp_path / "cache").rglob("app/late.py")
    kept.unlink()
    done = site.call("build", "--python", sys.executable, "good.toml", "--out", "lost 2", env=env)
    assert done.code == 1
    assert "error[install-incomplete]: " in done.err and "uv cache clean app\n" in done.err
