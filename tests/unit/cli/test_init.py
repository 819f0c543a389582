"""`envspec init`: a profile for a GPU and a stack, with the stack's lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from envspec.cli.main import cli
from envspec.data.gpus import known_gpus
from envspec.lock import read_lock
from envspec.profile import read_profile
from envspec.profile.starter import stacks
from envspec.report.errors import UsageError


def init(*args: str) -> str:
    result = CliRunner().invoke(cli, ["init", *args])
    if result.exception is not None:
        raise result.exception
    return result.output


def refused(*args: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        init(*args)
    return caught.value


@pytest.mark.parametrize("stack", stacks(), ids=lambda stack: stack.name)
@pytest.mark.parametrize("gpu", known_gpus(), ids=lambda gpu: gpu.name)
def test_every_pair_is_a_profile_with_the_lock_of_its_stack(
    stack: object, gpu: object, tmp_path: Path
) -> None:
    (one,) = [row for row in stacks() if row == stack]
    (row,) = [row for row in known_gpus() if row == gpu]
    file = tmp_path / "mine.toml"
    said = init(str(file), "--gpu", row.name, "--stack", one.name)
    assert said == f"{file}: {one.name} for {row.name} ({row.compiles_for}); next: envspec build {file}\n"
    profile, base = read_profile(file), read_profile(one.path)
    assert profile.gpu.arch == row.compiles_for
    assert profile.gpu.minimum_driver == "580.65.06"
    assert profile.packages == base.packages
    assert profile.memory_headroom == (16 << 30 if row.unified else 0)
    assert row.capability < (12, 0) or profile.memory_per_job == 8 << 30
    lock = read_lock(profile.lock_path)
    assert lock is not None and (lock.profile_name, lock.profile_digest) == ("mine.toml", profile.lock_digest)


def test_the_stacks_are_those_of_the_engines() -> None:
    assert [(stack.name, stack.title) for stack in stacks()] == [
        ("rtx-pro-6000", "SGLang on an RTX PRO 6000 Blackwell (SM120)"),
        ("sglang", "SGLang 0.5.23 with torch 2.14, flashinfer 0.7 and the CUDA 13.2 toolkit from pip wheels"),
        ("torch", "torch 2.15 with the CUDA toolkit that it pins itself"),
        ("vllm", "vLLM 0.33 with torch 2.14, flashinfer 0.7 and the CUDA 13.2 toolkit from pip wheels"),
    ]


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("mine")
    assert refused(str(file), "--gpu", "h200").code == "profile-exists"
    assert file.read_text() == "mine"


def test_names_that_are_not_known_get_the_nearest(tmp_path: Path) -> None:
    file = str(tmp_path / "mine.toml")
    assert refused(file, "--gpu", "h200", "--stack", "sglng").fix == "did you mean 'sglang'?"
    error = refused(file, "--gpu", "RTX 5099")
    assert (error.code, error.what) == ("unknown-gpu", "no GPU of the table is called 'RTX 5099'")
    assert error.fix.startswith("did you mean 'RTX 50")
    assert refused(str(tmp_path / "mine"), "--gpu", "h200").fix == f"envspec init {file}"
