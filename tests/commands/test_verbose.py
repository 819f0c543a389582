"""`-v`, `-vv` and the log of the last build: what envspec runs can be seen, and nothing that is secret."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ENVSPEC, environment, on_disk
from tests.support.site import INDEX, TrustSite

LOG = ".envspec/last-build.log"


@pytest.fixture(scope="module")
def built(site: TrustSite) -> Path:
    done = site.call("build", "--python", sys.executable, "good.toml")
    assert done.code == 0, done.err
    return site.root / "out"


def commands(text: str) -> list[str]:
    """The commands that are told, each in one line."""
    return re.findall(r"^\[\d+\] \$ (.*)$", re.sub(r" \\\n +", " ", text), re.MULTILINE)


def test_every_command_is_shown_with_its_project(site: TrustSite) -> None:
    done = site.call(
        "-v", "lock", "--python", sys.executable, "--upgrade", "good.toml", env={"UV_PRERELEASE": "allow"}
    )
    assert done.code == 0
    lock = next(line for line in commands(done.err) if " lock --python" in line)
    assert (
        lock.startswith("cd /tmp/envspec-lock-") and "-u UV_PRERELEASE" in lock and "UV_NO_PROGRESS=1" in lock
    )
    assert any(" export --frozen" in line for line in commands(done.err))
    assert '] pyproject.toml:\n    | [project]\n    | name = "profile"\n' in done.err
    assert re.search(r'^    \| dependencies = \[.*"nvidia-cuda-nvcc==13\.2\.78"', done.err, re.MULTILINE)
    assert re.search(r"^\[\d+\] exit 0 after \d+\.\d s$", done.err, re.MULTILINE)
    assert "Resolved " not in done.err
    assert done.out == ""


def test_twice_shows_what_they_print(site: TrustSite) -> None:
    done = site.call("-vv", "lock", "--python", sys.executable, "--upgrade", "good.toml")
    assert re.search(r"^    \| Resolved \d+ packages", done.err, re.MULTILINE)
    assert "    | nvidia-cuda-nvcc==13.2.78" in done.err


def test_no_secret_is_shown(site: TrustSite) -> None:
    site.profile(
        "secret",
        index=INDEX
        + '[[index]]\nname = "more"\nurl = "https://me:hunter22@127.0.0.1:9/simple"\nexplicit = true\n',
    )
    env = {
        "UV_INDEX_MORE_PASSWORD": "opensesame",
        "HF_TOKEN": "hf_secret",
        "UV_DEFAULT_INDEX": "https://t0ken1@127.0.0.1:9/",
    }
    done = site.call("-vv", "build", "--python", sys.executable, "secret.toml", "--out", "secret", env=env)
    log = (site.root / "secret" / LOG).read_text()
    for text in (done.err, log):
        assert '    | url = "https://***@127.0.0.1:9/simple"' in text
        assert not [secret for secret in ("hunter22", "opensesame", "hf_secret", "t0ken1") if secret in text]


def test_the_log_of_a_build_tells_all_of_it(built: Path, site: TrustSite) -> None:
    log = (built / LOG).read_text()
    stages = re.findall(r"^== (\w+)$", log, re.MULTILINE)
    assert stages == ["profile", "lock", "check", "install", "toolkit", "script", "audit", "smoke", "publish"]
    for part in (" pip install ", "/bin/nvcc' -c ", "-lcudart -lcuda", " venv --relocatable "):
        assert [line for line in commands(log) if part in line], part
    before = on_disk(built), (built / LOG).stat().st_mtime_ns
    assert site.call("build", "--python", sys.executable, "good.toml").code == 0
    assert (on_disk(built), (built / LOG).stat().st_mtime_ns) == before


def test_what_the_log_tells_can_be_run_again(built: Path) -> None:
    """The command that makes a venv, with its environment, as it stands in the log."""
    command = next(line for line in commands((built / LOG).read_text()) if " venv --relocatable " in line)
    again = re.sub(r"^cd '.*?/work/install'", "cd /tmp", command).replace("generations/1/venv", "work-again")
    assert subprocess.run(["sh", "-c", again], env=environment(), capture_output=True).returncode == 0
    assert (built / ".envspec/work-again/bin/python").exists()
    subprocess.run(["rm", "-rf", str(built / ".envspec/work-again")], check=True)


def test_a_build_that_fails_names_its_log(site: TrustSite) -> None:
    site.profile("gone", 'nothing-of-the-kind = "1.0"\n')
    done = site.call("build", "--python", sys.executable, "gone.toml", "--out", "gone")
    assert done.code == 2 and done.err.splitlines()[-2:] == [
        "  log: gone/.envspec/last-build.log", "  more: envspec explain no-such-version",
    ]  # fmt: skip
    log = (site.root / "gone" / LOG).read_text()
    assert "== lock failed after" in log and "error[no-such-version]" in log and "nothing-of-the-kind" in log
    told = site.call("build", "--python", sys.executable, "gone.toml", "--out", "gone", "--json")
    assert json.loads(told.out)["error"]["log"] == "gone/.envspec/last-build.log"


def test_what_run_becomes_is_shown(built: Path, site: TrustSite) -> None:
    done = site.call("-v", "run", "--", "python", "-c", "print('inside')")
    assert done.out == "inside\n" and "CUDA_HOME=" in done.err
    assert commands(done.err)[-1].endswith("""/venv/bin/python' -c 'print('"'"'inside'"'"')'""")


def test_without_it_nothing_more_is_said(site: TrustSite) -> None:
    done = subprocess.run(
        [*ENVSPEC, "doctor", "host-compiler"],
        cwd=site.root,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert "$" not in done.stderr
