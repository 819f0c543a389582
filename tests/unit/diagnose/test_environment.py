"""What is known of an environment is added to the answer; what is not known is not made up."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from envspec.cli.output_facts import packages_of
from envspec.diagnose import Diagnosis, diagnose
from envspec.diagnose.environment import EnvironmentFacts

SKEW = b"ptxas /tmp/a.ptx, line 5; fatal   : Unsupported .version 9.5; current version is '9.2'\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An output directory with a venv of which only the names of the distributions are there."""
    packages = tmp_path / "venv/lib/python3.12/site-packages"
    for name in (
        "nvidia_cuda_nvcc-13.2.78",
        "nvidia_nvvm-13.5.37",
        "nvidia_cuda_runtime-13.0.96",
        "torch-2.11.0+cu130",
    ):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    return tmp_path


def _facts(out: Path) -> EnvironmentFacts:
    return EnvironmentFacts(packages=packages_of(out))


def _with(facts: EnvironmentFacts, log: bytes = SKEW) -> Diagnosis:
    return diagnose(io.BytesIO(log), facts=facts)


def test_versions_are_read_from_the_venv(out: Path) -> None:
    facts = _facts(out)
    assert facts.packages["torch"] == "2.11.0+cu130"
    assert facts.toolkit == {"nvcc": "13.2.78", "ptxas and nvvm": "13.5.37", "runtime headers": "13.0.96"}


def test_the_answer_speaks_of_this_environment(out: Path) -> None:
    cause = _with(_facts(out)).cause
    assert cause is not None
    assert (
        "your nvcc is 13.2.78; your ptxas and nvvm is 13.5.37; your runtime headers is 13.0.96"
        in cause.meaning
    )
    assert "envspec check --fix PROFILE" in cause.fix


def test_a_driver_is_named_if_it_is_known() -> None:
    log = b"RuntimeError: The NVIDIA driver on your system is too old (found version 12040).\n"
    cause = _with(EnvironmentFacts(driver="550.54.14"), log).cause
    assert cause is not None
    assert "your driver is 550.54.14" in cause.meaning


def test_nothing_is_said_without_facts(tmp_path: Path) -> None:
    assert packages_of(tmp_path) == {}
    cause = _with(EnvironmentFacts()).cause
    assert cause is not None
    assert "In this environment" not in cause.meaning
