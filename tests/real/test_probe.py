"""Real probes of a real toolkit from wheels, at a path with blanks and commas; broken on purpose, they name the cause."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import envspec

PROFILE = """\
[gpu]
arch = "12.0a"
minimum-driver = "580.65.06"
[cuda]
toolkit = "13.2.1"
[packages]
ninja = "*"
[resolve]
exclude-newer = 2026-05-25
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a built environment: the toolkit and ninja alone."""
    root = tmp_path_factory.mktemp("probe, for SM120")
    (root / "small.toml").write_text(PROFILE)
    done = envspec("build", "small.toml", "--python", sys.executable, cwd=root)
    assert done.code == 0, done.err
    return root


@pytest.fixture
def without_header(root: Path) -> Iterator[Path]:
    """The same, while a header is gone from the toolkit."""
    header = root / "out/cuda/include/cuda_fp8.h"
    header.rename(header.with_name("away"))
    yield root
    header.with_name("away").rename(header)


def test_the_bare_toolkit_compiles_links_and_leaves_nothing(root: Path) -> None:
    done = envspec("probe", "--json", "--logs", "logs", cwd=root, timeout=400)
    assert done.code == 0, done.out
    found = json.loads(done.out)
    assert [(row["name"], row["outcome"]) for row in found["probes"]] == [
        (name, "works") for name in ("cuda-plain", "cuda-half", "cuda-cub", "cuda-driver", "cuda-nvrtc")
    ]
    assert all(row["did"][0].startswith("compiled") and "sm_120a" in row["did"][0] for row in found["probes"])
    assert sorted(p.name for p in (root / "logs").iterdir()) == sorted(
        f"{row['name']}.log" for row in found["probes"]
    )
    assert not list((root / "out/.envspec").glob("probe-*"))


def test_a_broken_toolkit_is_named_with_its_cause_and_what_mends_it(without_header: Path) -> None:
    done = envspec("probe", "cuda-half", cwd=without_header)
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("failed     cuda-half")
    assert lines[1] == (
        "error[probe-failed]: cuda-half (cuda_fp16, cuda_bf16 and cuda_fp8, which include nv/target) fails in this environment"
    )
    assert "fatal error: cuda_fp8.h: No such file or directory" in lines[2]
    assert lines[-1] == "probe: 0 of 1 work"


def test_bad_calls(root: Path) -> None:
    assert envspec("probe", "cuda-plane", cwd=root).err.startswith(
        "error[probe-unknown]: there is no probe 'cuda-plane'"
    )
    assert envspec("probe", "triton", cwd=root).err.startswith(
        "error[probe-not-installed]: triton needs triton, torch"
    )
    done = envspec("probe", "--out", "nowhere", cwd=root)
    assert (done.code, done.out) == (2, "")


def test_doctor_names_another_toolkit(root: Path) -> None:
    done = envspec(
        "doctor", "small.toml", "env-cuda", cwd=root, env={"CUDA_HOME": "/nowhere", "CUDA_PATH": None}
    )
    assert done.code == 0
    assert done.out.startswith("warning[env-cuda]: CUDA_HOME=/nowhere, which is no directory")
