"""What helping hands do to an environment: verify names it, repair puts back exactly that and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import envspec.data
from envspec.uv.run import find_uv
from tests.support.command import Done, on_disk
from tests.support.site import TrustSite, site_packages
from tests.support.texts import without_more
from tests.support.wheels import make_wheel

SCHEMA = Path(envspec.data.__file__).parent / "report.schema.json"
REPAIR = "  fix: envspec repair\n"
LEFT = "  fix: envspec repair --prune removes added packages; other files are yours\n"
CLEAN = (0, "verify: nothing found\n")


def verify(site: TrustSite, out: Path, *options: str) -> tuple[int, str]:
    """Exit code and the text, without the site-packages part of paths."""
    done = site.call("verify", *options, "--out", out)
    inside = site_packages(out).relative_to((out / "venv").resolve()).as_posix()
    return done.code, without_more(done.out).replace(inside, "SITE")


def repair(site: TrustSite, out: Path, *options: str) -> Done:
    return site.call("repair", *options, "--profile", "good.toml", "--out", out)


def state(out: Path) -> dict[str, tuple[object, ...]]:
    """All but the signs of the file system, which a repair may renew, and byte code."""
    return {
        path: row
        for path, row in on_disk(out).items()
        if "__pycache__" not in path
        and not path.endswith((".envspec", "stats.msgpack"))
        and Path(path).name != "1"
    }


def files_only(found: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """Without directories, whose times change when something in them does."""
    return {path: row for path, row in found.items() if len(row) > 1}


def edit_quietly(path: Path) -> None:
    """Another content with the old size, time and inode."""
    info = path.stat()
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(bytes([data[0] ^ 1]))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def replace_with(path: Path, text: str) -> None:
    """As an editor does: a new file under the old name."""
    path.with_name("new").write_text(text)
    path.with_name("new").replace(path)


def relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def to_link(path: Path, target: Path) -> None:
    path.unlink()
    path.symlink_to(target)


DRIFTS: dict[str, tuple[Callable[[Path, Path], object], str, tuple[str, ...]]] = {
    "another content": (
        lambda out, site: replace_with(site / "app/late.py", "late = 'mine'\n"),
        "error[drift-changed]: 1 file of app is changed\n  SITE/app/late.py\n" + REPAIR,
        ("app/late.py",),
    ),
    "the same size and time": (
        lambda out, site: edit_quietly(site / "app/late.py"),
        "",
        ("app/late.py",),
    ),
    "other permissions": (
        lambda out, site: (site / "app/late.py").chmod(0o600),
        "error[drift-changed]: 1 file of app has other permissions\n  SITE/app/late.py\n" + REPAIR,
        (),
    ),
    "a file is gone": (
        lambda out, site: (site / "lib/old.py").unlink(),
        "error[drift-missing]: 1 file of lib is missing\n  SITE/lib/old.py\n" + REPAIR,
        ("lib/old.py",),
    ),
    "a directory is gone": (
        lambda out, site: shutil.rmtree(site / "app"),
        "error[drift-missing]: 3 files of app are missing\n"
        "  SITE/app/__init__.py\n  SITE/app/data/table.txt\n  SITE/app/late.py\n" + REPAIR,
        ("app",),
    ),
    "a conflicting file is gone": (
        lambda out, site: (site / "shared/__init__.py").unlink(),
        "error[drift-missing]: 1 file of second is missing\n  SITE/shared/__init__.py\n" + REPAIR,
        ("shared/__init__.py",),
    ),
    "a file became a link": (
        lambda out, site: to_link(site / "lib/old.py", site / "app/late.py"),
        "error[drift-changed]: 1 file of lib is changed\n  SITE/lib/old.py\n" + REPAIR,
        ("lib/old.py",),
    ),
    "a launcher": (
        lambda out, site: replace_with(out / "venv/bin/app", "#!/bin/sh\n"),
        "error[drift-changed]: 1 file of app is changed\n  bin/app\n" + REPAIR,
        ("bin/app",),
    ),
    "the interpreter's link": (
        lambda out, site: relink(out / "venv/bin/python3", "/bin/sh"),
        "error[drift-changed]: 1 file of the venv itself is changed\n  bin/python3\n" + REPAIR,
        ("bin/python3",),
    ),
    "the venv's own words": (
        lambda out, site: (out / "venv/pyvenv.cfg").write_text("home = /usr/bin\n"),
        "error[drift-changed]: 1 file of the venv itself is changed\n  pyvenv.cfg\n" + REPAIR,
        ("pyvenv.cfg",),
    ),
    "the interpreter": (
        lambda out, site: (out / "venv/bin/python").unlink(),
        "error[drift-missing]: 1 file of the venv itself is missing\n  bin/python\n" + REPAIR,
        ("bin/python",),
    ),
    "the line that ties Python to its generation": (
        lambda out, site: (site / "zzzz_envspec_generation.pth").unlink(),
        "error[drift-missing]: 1 file of envspec is missing\n  SITE/zzzz_envspec_generation.pth\n" + REPAIR,
        ("zzzz_envspec_generation.pth",),
    ),
    "the script": (
        lambda out, site: (out / "current/sglang_env.sh").write_text("export X=1\n"),
        "error[drift-script]: the environment script was changed or removed\n" + REPAIR,
        ("sglang_env.sh",),
    ),
    "a toolkit file": (
        lambda out, site: replace_with((out / "cuda").resolve() / "include/nv/target", "#error\n"),
        "error[drift-toolkit]: 1 file of CUDA_HOME differs\n  include/nv/target\n" + REPAIR,
        ("include/nv/target",),
    ),
    "a toolkit link": (
        lambda out, site: relink((out / "cuda").resolve() / "lib64", "include"),
        "error[drift-toolkit]: 1 file of CUDA_HOME differs\n  lib64\n" + REPAIR,
        ("lib64",),
    ),
    "the stub": (
        lambda out, site: ((out / "cuda").resolve() / "lib/stubs/libcuda.so").write_bytes(b""),
        "error[drift-toolkit]: 1 file of CUDA_HOME differs\n  lib/stubs/libcuda.so\n" + REPAIR,
        ("libcuda.so",),
    ),
    "the toolkit": (
        lambda out, site: shutil.rmtree((out / "cuda").resolve()),
        "error[drift-toolkit]: 12 files of CUDA_HOME differ\n"
        "  bin/nvcc\n  include/crt/host_config.h\n  include/cuda.h\n  include/nv/target\n  and 8 more\n"
        + REPAIR,
        (".envspec/toolchains",),
    ),
    "the link to the toolkit": (
        lambda out, site: relink(out / "current/cuda", "/usr"),
        "error[drift-toolkit]: the link to CUDA_HOME was changed or removed\n" + REPAIR,
        ("/cuda",),
    ),
}


def _own(path: Path) -> Path:
    """Cut the hard link to uv's cache, which other tests use."""
    info = path.stat()
    shutil.copy2(path, path.with_name("own"))
    path.with_name("own").replace(path)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    return path


@pytest.mark.parametrize("drift", DRIFTS)
def test_drift_is_named_and_put_back(site: TrustSite, out: Path, drift: str) -> None:
    harm, text, touched = DRIFTS[drift]
    packages = site_packages(out)
    assert verify(site, out) == verify(site, out, "--hash") == CLEAN
    if "permissions" in drift or "same size" in drift:
        _own(packages / "app/late.py")
        assert repair(site, out).code == 0
    before = state(out)
    texts = {path: Path(path).read_bytes() for path in before if Path(path).is_file()}

    harm(out, packages)
    count = "verify: 1 error\n"
    if text:
        assert verify(site, out) == (1, text + count)
    else:  # only its content tells
        assert verify(site, out) == CLEAN
        text = DRIFTS["another content"][1]
    assert verify(site, out, "--hash") == (1, text + count)

    options = ["--hash"] if drift == "the same size and time" else []
    done = repair(site, out, "--offline", *options)
    assert (done.code, done.out) == (0, "verify: nothing found\n"), done.err
    assert verify(site, out, "--hash") == CLEAN
    after = state(out)
    assert {path: Path(path).read_bytes() for path in after if Path(path).is_file()} == texts
    moved = {
        path
        for path in before.keys() | after.keys()
        if files_only(before).get(path) != files_only(after).get(path)
    }
    assert [path for path in moved if not any(name in path for name in touched)] == []
    assert not (out / ".envspec" / "work").exists() and not (out / ".envspec" / "holder").exists()


def uv_pip(site: TrustSite, out: Path, *args: str) -> None:
    subprocess.run(
        [find_uv(), "pip", *args, "--python", str(out / "venv/bin/python")],
        cwd=site.root, check=True, capture_output=True,
    )  # fmt: skip


def with_uv(site: TrustSite, out: Path, *names: str) -> None:
    uv_pip(site, out, "install", "--no-index", "--find-links", "wheels", "--no-deps", *names)


def with_pip(site: TrustSite, out: Path, *names: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(out / "venv/bin/python"), "install", "--no-index", "--no-deps",
         "--find-links", str(site.root / "wheels"), *names],
        cwd=site.root, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("install", "name"), [(with_uv, "uv"), (with_pip, "pip")], ids=["uv", "pip"])
def test_an_upgrade_by_hand(site: TrustSite, out: Path, install: Callable[..., None], name: str) -> None:
    """The case that started it all."""
    before = state(out)
    install(site, out, "app==2.0")
    code, text = verify(site, out)
    assert code == 1
    assert re.sub(r"\d+ files", "N files", text) == (
        f"error[drift-replaced]: app 1.0 was replaced by 2.0 with {name}\n  N files changed, missing or added\n"
        + REPAIR
        + "verify: 1 error\n"
    )
    done = repair(site, out)
    assert (done.code, done.out) == (0, "verify: nothing found\n"), done.err
    assert "files of app put back (" in done.err
    assert not list(site_packages(out).glob("app-2.0*"))
    after = state(out)
    same = {p: r for p, r in files_only(after).items() if "app" not in p}
    assert same == {p: r for p, r in files_only(before).items() if "app" not in p}
    assert before.keys() == after.keys()


def test_a_build_mends_an_upgrade_by_hand_with_a_new_generation(site: TrustSite, out: Path) -> None:
    digest = site.digest(str(out))
    with_uv(site, out, "app==2.0")
    done = site.build("good.toml", "--out", out)
    assert done.code == 0
    assert "the environment is not what was published (see envspec verify); building it again\n" in done.err
    assert "generation 2 is current" in done.err
    assert site.digest(str(out)) == digest and verify(site, out, "--hash") == CLEAN


def test_a_build_mends_a_damaged_toolchain(site: TrustSite, out: Path) -> None:
    header = (out / "cuda").resolve() / "include/nv/target"
    replace_with(header, "#error\n")
    (header.parent.parent.parent / "lib/stubs/libcuda.so").unlink()
    assert site.build("good.toml", "--out", out).code == 0
    assert header.read_text() == "\n" and verify(site, out, "--hash") == CLEAN


def test_a_package_that_was_removed(site: TrustSite, out: Path) -> None:
    uv_pip(site, out, "uninstall", "lib")
    assert verify(site, out)[1].splitlines()[0] == "error[drift-replaced]: lib 1.0 was removed"
    assert repair(site, out, "--offline").out == "verify: nothing found\n"


def test_a_package_that_was_added(site: TrustSite, out: Path) -> None:
    before = state(out)
    with_uv(site, out, "guest")
    assert verify(site, out) == (
        0,
        "warning[drift-added]: guest 3.0 was added with uv; it is not in the lock\n  8 files\n"
        + LEFT
        + "verify: 1 warning\n",
    )
    done = repair(site, out)
    assert done.code == 0 and "nothing to repair" in done.err and (site_packages(out) / "guest").is_dir()
    done = repair(site, out, "--prune")
    assert done.out == "verify: nothing found\n" and "guest removed (" in done.err
    assert state(out).keys() == before.keys() and files_only(state(out)) == files_only(before)


def test_files_of_nobody_are_left_alone(site: TrustSite, out: Path) -> None:
    (site_packages(out) / "app" / "notes.txt").write_text("mine")
    expected = (
        0,
        "warning[drift-added]: 1 file that nobody locked\n  SITE/app/notes.txt\n"
        + LEFT
        + "verify: 1 warning\n",
    )
    assert verify(site, out) == expected
    assert repair(site, out, "--prune").code == 0
    assert verify(site, out) == expected


def test_several_at_once_as_json(site: TrustSite, out: Path) -> None:
    with_uv(site, out, "app==2.0")
    (site_packages(out) / "lib/old.py").unlink()
    (out / "current/sglang_env.sh").unlink()
    done = site.call("verify", "--json", "--out", out)
    found = json.loads(done.out)
    jsonschema.validate(found, json.loads(SCHEMA.read_text()))
    assert done.code == 1 and found["version"] == 1 and found["command"] == "verify"
    assert [(f["code"], f["severity"], f["subject"]) for f in found["findings"]] == [
        ("drift-missing", "error", "lib"),
        ("drift-replaced", "error", "app"),
        ("drift-script", "error", "sglang_env.sh"),
    ]
    done = repair(site, out, "--json")
    assert done.code == 0 and json.loads(done.out)["findings"] == []


def test_what_a_record_says_of_other_places_is_not_believed(
    site: TrustSite, out: Path, tmp_path: Path
) -> None:
    """A package that nobody locked names files outside, and of others, as its own."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    packages = site_packages(out)
    info = packages / "evil-1.dist-info"
    info.mkdir()
    (packages / "way").symlink_to(tmp_path)
    up = "../" * len(packages.parts)
    rows = [
        f"{up}{str(victim).lstrip('/')},,",
        f"{victim},,",
        "way/victim,,",
        "app/late.py,,",
        "evil-1.dist-info/RECORD,,",
    ]
    (info / "RECORD").write_text("\n".join(rows) + "\n")
    (info / "METADATA").write_text("Name: evil\nVersion: 1\n")
    done = repair(site, out, "--prune")
    assert done.code == 0 and victim.read_text() == "mine"
    assert (packages / "app/late.py").exists() and not info.exists()


def test_planted_links_lead_nowhere(site: TrustSite, out: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (victim / "repair").mkdir(parents=True)
    (victim / "keep").write_text("mine")
    packages = site_packages(out)
    shutil.rmtree(packages / "app")
    (packages / "app").symlink_to(victim)
    (out / ".envspec" / "work").symlink_to(victim)
    (out / ".envspec" / ".holder.new").symlink_to(victim / "keep")
    generation = (out / "current").resolve()
    (generation / ".stats.msgpack.new").symlink_to(victim / "keep")
    (generation / "sglang_env.sh").unlink()
    (generation / "sglang_env.sh").symlink_to(victim / "keep")
    done = repair(site, out)
    assert (done.code, done.out) == (0, "verify: nothing found\n"), done.err
    assert sorted(p.name for p in victim.rglob("*")) == ["keep", "repair"]
    assert (victim / "keep").read_text() == "mine"
    (out / ".envspec" / "lock").unlink()
    (out / ".envspec" / "lock").symlink_to(victim / "keep")
    done = repair(site, out)
    assert done.code == 3 and "error[output-unwritable]: cannot lock" in done.err
    assert (victim / "keep").read_text() == "mine"


def test_a_directory_in_the_way_is_not_removed(site: TrustSite, out: Path) -> None:
    path = site_packages(out) / "lib" / "old.py"
    path.unlink()
    path.mkdir()
    (path / "mine").write_text("x")
    done = repair(site, out)
    assert done.code == 1
    assert f"error[repair-impossible]: {path} is a directory that envspec did not make\n" in done.err
    assert (path / "mine").read_text() == "x"


def test_offline_without_a_cache(site: TrustSite, out: Path, tmp_path: Path) -> None:
    """From an index that is a directory nothing has to be fetched; without the index it cannot be done, and is said."""
    (site_packages(out) / "lib/old.py").unlink()
    cold: dict[str, str | None] = {"UV_CACHE_DIR": str(tmp_path / "cold")}
    done = site.call("repair", "--offline", "--out", out, env=cold)
    assert done.code in (1, 3) and "repair    failed after" in done.err and "error[" in done.err
    assert site.call("verify", "--out", out).code == 1
    done = site.call("repair", "--out", out, "--profile", "good.toml", env=cold)
    assert (done.code, done.out) == (0, "verify: nothing found\n")


def test_two_winners_of_one_path(site: TrustSite, tmp_path: Path) -> None:
    """The later one has it; both are put back, in whatever order."""
    wheels = site.root / "wheels"
    for name in ("alpha", "omega", "middle"):
        make_wheel(wheels, name, "1.0", {"three/one.py": f"owner = {name!r}\n", f"three/{name}.py": ""})
    for number, order in enumerate((("middle", "alpha"), ("alpha", "omega"))):
        winners = "[install]\nprecedence = [" + ", ".join(f'"{name}"' for name in order) + "]\n"
        packages = 'alpha = "1.0"\nomega = "1.0"\nmiddle = "1.0"\n'
        site.profile(f"three{number}", packages, winners)
        out = site.made(f"three {number}", f"three{number}.toml")
        shutil.rmtree(site_packages(out) / "three")
        done = site.call("repair", "--profile", f"three{number}.toml", "--out", out)
        assert (done.code, done.out) == (0, "verify: nothing found\n"), done.err
        assert (site_packages(out) / "three/one.py").read_text() == f"owner = {order[1]!r}\n"
        assert verify(site, out, "--hash") == CLEAN


def test_a_cache_that_was_edited_through_a_link(site: TrustSite, tmp_path: Path) -> None:
    env: dict[str, str | None] = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_LINK_MODE": "hardlink"}
    one, other = site.made("linked 1", env=env), site.made("linked 2", env=env)
    with (site_packages(one) / "lib/__init__.py").open("a") as file:
        file.write("evil = 1\n")
    for out in (one, other):
        assert verify(site, out)[0] == 1
        done = site.call("repair", "--out", out, "--profile", "good.toml", env=env)
        assert (done.code, done.out) == (0, "verify: nothing found\n")
    assert verify(site, one, "--hash") == verify(site, other, "--hash") == CLEAN


def test_a_manifest_that_was_damaged(site: TrustSite, out: Path) -> None:
    manifest = (out / "envspec.json").resolve()
    text = manifest.read_text()
    for damaged in (
        "",
        "{",
        "[]",
        text[: len(text) // 2],
        text.replace('"version": 1', '"version": 2', 1),
        "[" * 100_000,
    ):
        manifest.write_text(damaged)
        for command in ("verify", "repair", "digest"):
            done = site.call(command, "--out", out)
            assert done.code == 1 and f"error[manifest-damaged]: {manifest} is not a manifest" in done.err
    (out / ".envspec/generations/1/stats.msgpack").write_bytes(b"\xc1")
    manifest.write_text(text)
    assert verify(site, out) == CLEAN  # then all is read


def test_an_output_that_is_none(site: TrustSite, tmp_path: Path) -> None:
    for command in ("verify", "repair", "digest", "generations", "rollback", "gc"):
        done = site.call(command, "--out", tmp_path / "nothing")
        assert (
            done.code == 2 and "error[output-missing]: " in done.err and not (tmp_path / "nothing").exists()
        )
