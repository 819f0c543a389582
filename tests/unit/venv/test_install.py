"""Installing exactly what is locked, with one owner for each path that packages conflict about. Real uv, tiny wheels."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.host.python import ChosenPython
from envspec.lock import Lock, parse_lock, render_lock
from envspec.lock.resolve import resolve
from envspec.profile import Profile
from envspec.report.errors import EnvspecError, Exit, UsageError
from envspec.report.text import render_error
from envspec.uv.run import Uv
from envspec.venv.install import Venv, install
from envspec.venv.owners import conflicts, installed_packages
from tests.support.texts import without_more
from tests.support.wheels import make_wheel

WriteProfile = Callable[..., Profile]


@pytest.fixture
def conflicting(tmp_path: Path) -> None:
    """Two packages with one path of different and one of equal content, and a third that wants both."""
    wheels = tmp_path / "wheels"
    same = {"shared/same.py": "same = True\n"}
    make_wheel(wheels, "libs-base", "1.0", {"shared/lib.py": "owner = 'base'\n", **same, "base.py": "\n"})
    make_wheel(wheels, "libs-cu13", "1.0", {"shared/lib.py": "owner = 'cu13'\n", **same, "cu13.py": "\n"})
    make_wheel(wheels, "app", "2.0", requires=["libs-base", "libs-cu13>=1"], scripts={"app": "app:main"})


def build(profile: Profile, uv: Uv, python: ChosenPython, at: Path) -> tuple[Lock, Venv]:
    lock = resolve(profile, uv, python.path).lock
    return lock, install(profile, lock, python, uv, at / "venv", at / "work")


@pytest.mark.usefixtures("conflicting")
def test_the_declared_winner_is_on_disk(
    tmp_path: Path, local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    for winner, loser in (("libs-base", "libs-cu13"), ("libs-cu13", "libs-base")):
        profile = local_profile('app = "2.0"', f'[install]\nprecedence = ["{loser}", "{winner}"]\n')
        _, venv = build(profile, uv, python, tmp_path / winner)
        text = (venv.site_packages / "shared" / "lib.py").read_text()
        assert text == f"owner = '{winner.removeprefix('libs-')}'\n"
        assert venv.winners == (("shared/lib.py", winner),)
        assert [(p.name, p.version) for p in venv.packages] == [
            ("app", "2.0"),
            ("libs-base", "1.0"),
            ("libs-cu13", "1.0"),
        ]


@pytest.mark.usefixtures("conflicting")
def test_a_contest_without_winner_is_refused(
    tmp_path: Path, local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    with pytest.raises(EnvspecError) as caught:
        build(local_profile('app = "2.0"'), uv, python, tmp_path / "out")
    assert caught.value.exit is Exit.FINDINGS
    assert without_more(render_error(caught.value)).replace(f"{tmp_path}/", "") == (
        "error[file-conflict]: packages own the same paths with different content, and none is declared to win\n"
        "  local.toml: install.precedence\n"
        "  libs-base and libs-cu13: 1 path, such as shared/lib.py\n"
        '  fix: name the one whose files are right, for example: precedence = ["libs-cu13"]\n'
    )


@pytest.mark.usefixtures("conflicting")
def test_a_wheel_with_other_bytes_than_locked_is_refused(
    tmp_path: Path, local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    profile = local_profile('libs-base = "1.0"')
    lock = resolve(profile, uv, python.path).lock
    make_wheel(tmp_path / "wheels", "libs-base", "1.0", {"shared/lib.py": "owner = 'somebody else'\n"})
    with pytest.raises(EnvspecError) as caught:
        install(profile, lock, python, uv, tmp_path / "venv", tmp_path / "work")
    assert caught.value.code == "hash-mismatch"
    assert caught.value.what == "a downloaded file is not the file that was locked"
    assert lock.packages[0].files[0].sha256 in caught.value.why


def test_an_empty_record_and_extra_rows_are_read(tmp_path: Path) -> None:
    info = tmp_path / "a-1.dist-info"
    info.mkdir()
    (info / "RECORD").write_text(
        "a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n../../../bin/a,,\na.pyc,md5=1,x\n"
    )
    (package,) = installed_packages(tmp_path)
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert [(r.path, r.sha256, r.size) for r in package.rows] == [
        ("a.py", empty, 0),
        ("../../../bin/a", "", -1),
        ("a.pyc", "", -1),
    ]
    assert conflicts([package, package]) == ()


@pytest.mark.usefixtures("conflicting")
def test_locks_are_byte_identical_and_keep_what_fits(
    tmp_path: Path, local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    profile = local_profile('app = "2.0"')
    first = resolve(profile, uv, python.path).lock
    assert render_lock(resolve(profile, uv, python.path).lock) == render_lock(first)
    assert parse_lock(render_lock(first)) == first
    make_wheel(tmp_path / "wheels", "libs-base", "2.0")
    kept = resolve(profile, uv, python.path, keep=first).lock
    assert render_lock(kept) == render_lock(first)
    assert [
        p.version
        for p in resolve(profile, uv, python.path, keep=first, upgrade=["libs-base"]).lock.named("libs-base")
    ] == ["2.0"]
    assert [
        p.version for p in resolve(profile, uv, python.path, keep=first, upgrade=[]).lock.named("libs-base")
    ] == ["2.0"]


@pytest.mark.usefixtures("conflicting")
def test_pip_installs_the_lock_too(
    tmp_path: Path, local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    lock = tmp_path / "local.lock"
    lock.write_text(render_lock(resolve(local_profile('app = "2.0"'), uv, python.path).lock))
    options = [
        "--no-deps",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--no-index",
        "--find-links",
        str(tmp_path / "wheels"),
    ]
    target = tmp_path / "target"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", *options, "--target", target, "-r", lock],
        check=True,
        timeout=300,
    )
    assert sorted(p.name for p in target.glob("*.dist-info")) == [
        "app-2.0.dist-info",
        "libs_base-1.0.dist-info",
        "libs_cu13-1.0.dist-info",
    ]


def test_an_unsatisfiable_profile_gives_uvs_reason(
    tmp_path: Path, local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    make_wheel(tmp_path / "wheels", "app", "2.0", requires=["lib==1.0"])
    make_wheel(tmp_path / "wheels", "lib", "1.0")
    make_wheel(tmp_path / "wheels", "lib", "2.0")
    with pytest.raises(UsageError) as caught:
        resolve(local_profile('app = "2.0"\nlib = "2.0"'), uv, python.path)
    assert caught.value.code == "unsatisfiable"
    assert (
        "depends on lib==1.0" in caught.value.why and "your profile depends on lib==2.0" in caught.value.why
    )
    assert "your profile" in caught.value.why and "your project" not in caught.value.why


def test_a_version_that_does_not_exist(
    tmp_path: Path, local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    make_wheel(tmp_path / "wheels", "app", "2.0")
    with pytest.raises(UsageError) as caught:
        resolve(local_profile('app = "9.9"'), uv, python.path)
    assert (
        without_more(render_error(caught.value)).splitlines()[0]
        == "error[no-such-version]: the profile names a version or a package that the index does not have"
    )
    assert "there is no version of app==9.9" in caught.value.why
