"""generations, rollback, gc, diff: which environments an output holds, and what their numbers mean."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envspec.fs import remove_tree
from tests.support.command import on_disk
from tests.support.site import PACKAGES, STATE_NAMES, WINNERS, TrustSite
from tests.support.texts import without_more

OTHER = PACKAGES.replace('app = "1.0"', 'app = "2.0"').replace('tool = "1.0"\n', 'guest = "3.0"\n')


@pytest.fixture
def two(site: TrustSite, out: Path) -> Path:
    """An output with two generations; app is 2.0 in the second."""
    site.profile("other", OTHER, WINNERS)
    return site.made(out.name, "other.toml")


def numbers(out: Path) -> list[str]:
    return sorted(p.name for p in (out / ".envspec" / "generations").iterdir())


def current(out: Path) -> str:
    return (out / "current").readlink().name


def version(out: Path) -> str:
    code = "import app; print(app.version)"
    done = subprocess.run(
        [str(out / "venv/bin/python"), "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_list(site: TrustSite, two: Path) -> None:
    found = json.loads(site.call("generations", "--json", "--out", two).out)["generations"]
    assert [(g["number"], g["current"], g["profile"], g["packages"]) for g in found] == [
        (2, True, "other", 11),
        (1, False, "good", 11),
    ]
    lines = site.call("generations", "--out", two).out.splitlines()
    for line, row in zip(lines, found, strict=True):
        mark = "*" if row["current"] else " "
        assert line == (
            f"{mark} {row['number']:<4} {row['built']}  {row['profile']}  11 packages  {row['digest'][:19]}  "
            f"cuda {row['toolchain']}"
        )


def test_back_and_forth(site: TrustSite, two: Path) -> None:
    assert version(two) == "2.0"
    assert site.call("rollback", "--out", two) == (0, "generation 1 is current\n", "")
    assert (version(two), current(two)) == ("1.0", "1")
    done = site.call("rollback", "--out", two)
    assert (done.code, without_more(done.err)) == (
        2,
        f"error[no-generation]: there is no generation before 1\n  {two}\n",
    )
    assert site.call("rollback", "2", "--out", two).out == "generation 2 is current\n"
    assert site.call("rollback", "2", "--out", two).out == "generation 2 is current\n"
    done = site.call("rollback", "7", "--out", two)
    assert (done.code, without_more(done.err)) == (
        2,
        f"error[no-generation]: there is no generation 7\n  {two}\n  fix: it has 1, 2\n",
    )
    # What was built for another profile is current again at once, and a build of the first one is a new generation.
    assert site.call("build", "--python", sys.executable, "other.toml", "--out", two).out.startswith(
        "nothing to do"
    )
    site.made(two.name, "good.toml")
    assert (current(two), numbers(two)) == ("3", ["1", "2", "3"])


def test_a_number_is_never_used_twice(site: TrustSite, two: Path) -> None:
    site.call("rollback", "--out", two)
    assert site.gc(two) == "removed generations: 2\n"
    site.made(two.name, "other.toml")
    assert current(two) == "3"
    site.call("rollback", "1", "--out", two)
    site.gc(two)
    (two / ".envspec" / "last").write_bytes(b"\xff nonsense")  # then what is there decides
    site.made(two.name, "other.toml")
    assert current(two) == "2"
    (two / ".envspec" / "last").write_text("41\n")
    site.made(two.name, "good.toml")
    assert current(two) == "42"


def test_gc_keeps_what_it_is_told_to(site: TrustSite, two: Path) -> None:
    site.made(two.name, "good.toml")
    site.made(two.name, "other.toml")
    assert numbers(two) == ["1", "2", "3", "4"]
    assert site.gc(two, keep=2) == "removed generations: 1\n"
    assert site.gc(two, keep=2) == "removed generations: nothing\n"
    site.call("rollback", "2", "--out", two)
    assert site.gc(two, keep=1) == "removed generations: 3\n"
    assert numbers(two) == ["2", "4"] and current(two) == "2"
    before = on_disk(two / ".envspec" / "generations" / "2")
    assert site.gc(two) == "removed generations: 4\n"
    assert on_disk(two / ".envspec" / "generations" / "2") == before
    assert len(list((two / ".envspec" / "toolchains").iterdir())) == 1


def test_what_somebody_made_read_only_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may remove from a read-only directory anyway, so root becomes nobody for it."""
    home = tmp_path / "home"
    (home / "tree" / "a" / "b").mkdir(parents=True)
    (home / "tree" / "a" / "b" / "file").write_text("x")
    (home / "kept").write_text("x")
    (home / "tree" / "a" / "link").symlink_to("../../kept")
    (home / "tree" / "a" / "closed").mkdir()
    root = os.geteuid() == 0
    for path in [home, *home.rglob("*")] if root else []:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    for name, mode in (("a/b", 0o555), ("a/closed", 0), ("a", 0o500), (".", 0o500)):
        (home / "tree" / name).chmod(mode)
    monkeypatch.chdir(home)
    if root:
        os.seteuid(65534)
    try:
        remove_tree(Path("tree"))
    finally:
        if root:
            os.seteuid(0)
    assert sorted(p.name for p in home.iterdir()) == ["kept"]


@pytest.mark.parametrize(
    ("lost", "what"),
    [
        ("cuda/bin/nvcc", "its toolchain"),
        ("cuda", "its link to CUDA_HOME"),
        ("sglang_env.sh", "its script"),
        ("venv/bin/python", "its Python"),
    ],
)
def test_no_way_back_to_what_has_lost_a_part(site: TrustSite, two: Path, lost: str, what: str) -> None:
    (two / ".envspec" / "generations" / "1" / lost).unlink()
    done = site.call("rollback", "--out", two)
    assert done.code == 2 and f"error[no-generation]: generation 1 has lost {what}\n" in done.err
    assert current(two) == "2"


@pytest.mark.parametrize("damaged", ["", "{}", '{"version": 1}'])
def test_damaged_manifests(site: TrustSite, two: Path, damaged: str) -> None:
    manifest = two / ".envspec" / "generations" / "1" / "envspec.json"
    manifest.write_text(damaged)
    line = site.call("generations", "--out", two).out.splitlines()[1]
    assert line == f"  1    {manifest} is not a manifest of this envspec"
    done = site.call("rollback", "--out", two)
    assert done.code == 1 and "error[manifest-damaged]" in done.err and current(two) == "2"
    done = site.call("diff", "1", "2", "--out", two)
    assert done.code == 1 and "error[manifest-damaged]" in done.err
    assert site.gc(two) == "removed generations: 1\n"
    assert version(two) == "2.0"


def test_the_current_manifest_is_lost(site: TrustSite, two: Path) -> None:
    """The environment is still there and may be in use: it is not swept, and there is a way back and a way on."""
    (two / ".envspec" / "generations" / "2" / "envspec.json").unlink()
    assert version(two) == "2.0"
    done = site.call("verify", "--out", two)
    assert done.code == 2 and "error[output-unbuilt]" in done.err
    assert site.gc(two) == "removed generations: 1\n" and version(two) == "2.0"
    done = site.call("rollback", "--out", two)
    assert done.code == 2 and "error[output-unbuilt]" in done.err
    site.made(two.name, "good.toml")
    assert (current(two), version(two)) == ("3", "1.0")
    site.made(two.name, "other.toml")
    assert numbers(two) == ["3", "4"]


def test_the_switch_of_people_who_type_paths(site: TrustSite, two: Path) -> None:
    for name in ("sglang_env.sh", "venv", "cuda", "envspec.json"):
        assert str((two / name).readlink()) == f"current/{name}"
    assert sorted(p.name for p in two.iterdir()) == [
        ".envspec",
        "cuda",
        "current",
        "envspec.json",
        "sglang_env.sh",
        "venv",
    ]
    assert {p.name for p in (two / ".envspec").iterdir()} == STATE_NAMES


def test_differences(site: TrustSite, two: Path) -> None:
    done = site.call("diff", "1", "2", "--out", two)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:4] == [
        "generation 1 -> generation 2",
        "  ~ app 1.0 -> 2.0",
        "  + guest 3.0",
        "  - tool 1.0",
    ]
    assert lines[4].endswith(" files differ")
    found = json.loads(site.call("diff", "2", "1", "--json", "--out", two).out)
    assert found["version"] == 1 and found["packages"] == [
        ["app", "2.0", "1.0"],
        ["guest", "3.0", ""],
        ["tool", "", "1.0"],
    ]
    assert found["same_digest"] is False
    assert (
        site.call("diff", "2", "2", "--out", two).out
        == "generation 2 -> generation 2\nthe same environment\n"
    )
    for a, b in (("good.toml", "other.toml"), ("good.lock", "other.lock"), ("good.lock", two)):
        assert "  ~ app 1.0 -> 2.0\n" in site.call("diff", a, b).out
    shutil.copy(two / "envspec.json", site.root / "theirs.json")
    assert "the same environment" in site.call("diff", "2", "theirs.json", "--out", two).out
    for bad in ("9", "nothing.lock", "wheels"):
        done = site.call("diff", bad, "2", "--out", two)
        assert done.code == 2 and "error[diff-what]: " in done.err
