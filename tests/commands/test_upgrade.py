"""envspec upgrade: everything new, or everything as it was."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.command import ENVSPEC, environment, on_disk
from tests.support.site import PACKAGES, STATE_NAMES, WINNERS, TrustSite
from tests.support.wheels import make_wheel

STAGES = ("profile", "lock", "check", "install", "toolkit", "script", "audit", "smoke", "publish")
OPEN = PACKAGES.replace('app = "1.0"', 'app = ">=1"').replace('lib = "1.0"', 'lib = ">=1"')


class Upgradable:
    """An output whose lock has app and lib at 1.0 while the profile admits 2.0."""

    def __init__(self, site: TrustSite, name: str) -> None:
        self.site = site
        self.name = f"up {name}"
        self.profile = site.profile(self.name, PACKAGES, WINNERS)
        site.made(self.name, self.profile.name)
        lock = self.lock.read_text()
        site.profile(self.name, OPEN, WINNERS)
        done = site.call("lock", self.profile.name, "--python", sys.executable)
        assert done.code == 0 and "app==1.0" in self.lock.read_text(), (lock, done)
        site.made(self.name, self.profile.name)
        self.before = self.kept()

    @property
    def lock(self) -> Path:
        return self.profile.with_suffix(".lock")

    @property
    def out(self) -> Path:
        return self.site.root / self.name

    def kept(self) -> dict[str, tuple[object, ...]]:
        """The lock, and the output but for its byte code."""
        return {p: r for p, r in on_disk(self.lock, self.out).items() if "__pycache__" not in p}

    def upgrade(
        self, *args: str, answer: str = "", env: Mapping[str, str | None] | None = None
    ) -> tuple[int, str, str]:
        done = subprocess.run(
            [*ENVSPEC, "upgrade", self.profile.name, *args, "--python", sys.executable, "--out", self.name],
            cwd=self.site.root, input=answer, env=environment(env), capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    def start(self, verb: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*ENVSPEC, verb, self.profile.name, "--python", sys.executable, "--out", self.name],
            cwd=self.site.root, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe, text=True,
        )  # fmt: skip

    def versions(self) -> list[str]:
        code = "import app, lib; print(app.version, lib.version)"
        done = subprocess.run(
            [str(self.out / "venv/bin/python"), "-c", code], capture_output=True, text=True, check=True
        )
        return done.stdout.split()


@pytest.fixture(scope="module")
def unchanged() -> list[Upgradable]:
    """What tests left as it was."""
    return []


@pytest.fixture
def one(site: TrustSite, tmp_path: Path, unchanged: list[Upgradable]) -> Iterator[Upgradable]:
    """An output for one test alone; the next one gets it if nothing has changed."""
    taken = unchanged.pop() if unchanged else Upgradable(site, tmp_path.name)
    yield taken
    if taken.kept() == taken.before:
        unchanged.append(taken)


def test_yes(one: Upgradable) -> None:
    code, out, err = one.upgrade("--yes")
    assert code == 0, err
    assert out == f"  ~ app 1.0 -> 2.0\n  ~ lib 1.0 -> 2.0\nsource '{one.name}/sglang_env.sh'\n"
    assert one.versions() == ["2.0", "2.0"] and "app==2.0" in one.lock.read_text()
    stages = [line.split()[0] for line in err.splitlines()]
    assert [name for name in stages if name in STAGES] == list(STAGES), err
    assert one.site.call("rollback", "--out", one.name).code == 0
    assert one.versions() == ["1.0", "1.0"]
    assert one.upgrade("--yes")[1] == "nothing was changed\n"


def test_one_package_and_an_answer(one: Upgradable) -> None:
    code, out, err = one.upgrade("App", answer="y\n")
    assert code == 0, err
    assert out.startswith("  ~ app 1.0 -> 2.0\nbuild this? [y/N]: ")
    assert one.versions() == ["2.0", "1.0"]


@pytest.mark.parametrize(("answer", "code"), [("n\n", 0), ("\n", 0), ("", 130)])
def test_no(one: Upgradable, answer: str, code: int) -> None:
    assert one.upgrade(answer=answer)[0] == code
    assert one.kept() == one.before


def test_nobody_builds_there_while_it_asks(one: Upgradable) -> None:
    """What the user says yes to is what gets built."""
    asking = one.start("upgrade")
    assert asking.stdout is not None
    assert asking.stdout.readline() == "  ~ app 1.0 -> 2.0\n"
    building = one.start("build")
    assert building.stderr is not None
    building.stderr.readline()  # the profile
    assert building.stderr.readline().startswith(f"waiting for process {asking.pid} ")
    asking.communicate("n\n", timeout=60)
    out, _ = building.communicate(timeout=60)
    assert (asking.returncode, building.returncode) == (0, 0) and out.startswith("nothing to do")
    assert one.kept() == one.before


def test_an_unknown_package(one: Upgradable) -> None:
    code, out, err = one.upgrade("nonsense", "--yes")
    assert (code, out) == (2, "") and "error[unknown-package]: nonsense is not in the lock\n" in err
    assert one.kept() == one.before


def test_nothing_to_upgrade(one: Upgradable) -> None:
    code, out, err = one.upgrade("tool", "--yes")
    assert (code, out) == (0, "nothing was changed\n") and "0 changed" in err
    assert one.kept() == one.before


def test_a_check_that_fails(one: Upgradable) -> None:
    wheel = make_wheel(
        one.site.root / "wheels",
        "lib",
        "3.0",
        {"shared/__init__.py": "", "nvidia/cu13/include/cuda.h": "int x;\n"},
    )
    toolkit = make_wheel(
        one.site.root / "wheels", "nvidia-nvvm", "13.5.37", {"nvidia/cu13/nvvm/bin/cicc": "\n"}
    )
    one.profile.write_text(one.profile.read_text().replace('nvidia-nvvm = "13.2.78"', 'nvidia-nvvm = ">=13"'))
    assert one.site.call("lock", one.profile.name, "--python", sys.executable).code == 0
    before = one.kept()
    code, out, err = one.upgrade("nvidia-nvvm", "--yes")
    toolkit.unlink()
    wheel.unlink()
    assert (code, out) == (1, "")
    assert "error[toolkit-mixed]" in err and "error[check-failed]: the upgraded set cannot work" in err
    assert one.kept() == before


def test_a_build_that_fails(one: Upgradable, tmp_path: Path) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-shared*) echo broken >&2; exit 1 ;; esac\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    code, out, err = one.upgrade("--yes", env={"CXX": str(compiler)})
    assert code == 1 and "error[smoke-link]" in err and "source" not in out
    assert one.kept() == one.before
    assert one.versions() == ["1.0", "1.0"]


def test_killed_in_the_middle(one: Upgradable, tmp_path: Path) -> None:
    """The lock is not written before the build has passed, so nothing has to be put back."""
    reached, released = tmp_path / "reached", tmp_path / "released"
    compiler = tmp_path / "c++"
    wait = f"touch '{reached}'; until [ -e '{released}' ]; do sleep 0.1; done; exit"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *-shared*) {wait} ;; esac\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    lock = one.lock.read_bytes()
    process = subprocess.Popen(
        [*ENVSPEC, "upgrade", one.profile.name, "--yes", "--python", sys.executable, "--out", one.name],
        cwd=one.site.root, env=environment({"CXX": str(compiler)}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not reached.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert one.lock.read_bytes() == lock and one.versions() == ["1.0", "1.0"]
    building = one.start("build")
    assert building.stderr is not None
    building.stderr.readline()  # the profile
    assert "waiting for what is still running of process" in building.stderr.readline()
    released.touch()
    assert building.communicate(timeout=60)[0].startswith("nothing to do")
    assert one.upgrade("--yes")[0] == 0 and one.versions() == ["2.0", "2.0"]
    assert {p.name for p in (one.out / ".envspec").iterdir()} == STATE_NAMES


def test_a_lock_that_cannot_be_written(one: Upgradable) -> None:
    (one.site.root / f".{one.name}.lock.new").mkdir()
    code, _, err = one.upgrade("--yes")
    assert code == 3 and "error[lock-unwritable]: cannot write" in err
    (one.site.root / f".{one.name}.lock.new").rmdir()
    assert one.kept() == one.before
