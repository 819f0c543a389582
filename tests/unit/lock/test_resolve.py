"""What a lock adds to a resolution: the toolkit release set with its overrides, and labels that have to be true. Tiny wheels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.host.python import ChosenPython
from envspec.lock.model import OverrideRecord
from envspec.lock.resolve import resolve
from envspec.profile import Profile
from envspec.report.errors import UsageError
from envspec.report.text import render_error
from envspec.uv.run import Uv
from tests.support.texts import without_more
from tests.support.wheels import make_wheel

WriteProfile = Callable[..., Profile]
RELEASES = {"13.0.2": ("13.0.88", "13.0.96"), "13.2.1": ("13.2.78", "13.2.75")}


@pytest.fixture(autouse=True)
def wheels(tmp_path: Path) -> None:
    """torch as NVIDIA's wheels have it: it pins the run-time library of CUDA 13.0; nvcc pins none of its own parts."""
    made = tmp_path / "wheels"
    for release, (compiler, runtime) in RELEASES.items():
        requires = [
            f'nvidia-cuda-nvcc=={compiler}; extra == "nvcc"',
            f'nvidia-nvvm=={compiler}; extra == "nvvm"',
            f'nvidia-cuda-runtime=={runtime}; extra == "cudart"',
        ]
        make_wheel(made, "cuda-toolkit", release, requires=requires, extras=("nvcc", "nvvm", "cudart"))
        make_wheel(made, "nvidia-cuda-nvcc", compiler, requires=["nvidia-nvvm"])
        make_wheel(made, "nvidia-nvvm", compiler)
        make_wheel(made, "nvidia-cuda-runtime", runtime)
    make_wheel(made, "nvidia-nvvm", "13.5.37")
    make_wheel(made, "torch", "2.11.0", requires=["cuda-toolkit[cudart]==13.0.2"])
    make_wheel(made, "torch", "2.11.1")


def locked(
    profile: Profile, uv: Uv, python: ChosenPython
) -> tuple[dict[str, str], tuple[OverrideRecord, ...]]:
    lock = resolve(profile, uv, python.path).lock
    return {package.name: package.version for package in lock.packages}, lock.overrides


CUDA = '[cuda]\ntoolkit = "{}"\ncomponents = ["nvcc", "nvvm", "cudart"]'


def test_without_a_release_three_of_them_are_mixed(
    local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    """The fault that the set exists for."""
    versions, overrides = locked(local_profile('torch = "2.11.0"\nnvidia-cuda-nvcc = "13.2.78"'), uv, python)
    assert versions["nvidia-nvvm"] == "13.5.37" and versions["nvidia-cuda-runtime"] == "13.0.96"
    assert overrides == ()


def test_the_set_overrides_whoever_asks_for_another_release(
    local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    versions, overrides = locked(local_profile('torch = "2.11.0"', CUDA.format("13.2.1")), uv, python)
    assert versions == {
        "cuda-toolkit": "13.0.2",
        "nvidia-cuda-nvcc": "13.2.78",
        "nvidia-cuda-runtime": "13.2.75",
        "nvidia-nvvm": "13.2.78",
        "torch": "2.11.0",
    }
    assert overrides == (
        OverrideRecord(
            name="nvidia-cuda-runtime",
            version="13.2.75",
            reason="part of CUDA toolkit 13.2.1, whose parts only work together",
            dependency_paths=(
                "nvidia-cuda-runtime==13.0.96 <- cuda-toolkit 13.0.2 [cudart] <- torch 2.11.0 <- your profile",
            ),
        ),
    )


def test_the_release_that_torch_pins_needs_no_override(
    local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    versions, overrides = locked(local_profile('torch = "2.11.0"', CUDA.format("13.0.2")), uv, python)
    assert (versions["nvidia-nvvm"], versions["nvidia-cuda-runtime"]) == ("13.0.88", "13.0.96")
    assert overrides == ()


def test_a_version_that_the_profile_names_itself_is_the_sets(
    local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    profile = local_profile('torch = "2.11.0"\nnvidia-cuda-runtime = "13.2.75"', CUDA.format("13.0.2"))
    versions, overrides = locked(profile, uv, python)
    assert (versions["nvidia-nvvm"], versions["nvidia-cuda-runtime"]) == ("13.0.88", "13.2.75")
    assert [(o.name, o.reason) for o in overrides] == [
        ("nvidia-cuda-runtime", "the profile names this version itself")
    ]


def refused(profile: Profile, uv: Uv, python: ChosenPython) -> str:
    with pytest.raises(UsageError) as caught:
        resolve(profile, uv, python.path)
    return without_more(render_error(caught.value)).replace(f"{profile.path.parent}/", "")


def test_a_component_that_the_release_does_not_have(
    local_profile: WriteProfile, uv: Uv, python: ChosenPython
) -> None:
    more = '[cuda]\ntoolkit = "13.2.1"\ncomponents = ["nvcc", "nvrtc"]'
    assert refused(local_profile('torch = "2.11.0"', more), uv, python) == (
        "error[toolkit-no-component]: CUDA toolkit 13.2.1 has no component 'nvrtc'\n"
        "  local.toml: cuda.components\n"
        "  fix: it has cudart, nvcc, nvvm\n"
    )


def test_a_label_that_is_true(local_profile: WriteProfile, uv: Uv, python: ChosenPython) -> None:
    versions, _ = locked(local_profile('torch = "2.11.0+cu130"'), uv, python)
    assert versions["torch"] == "2.11.0"


def test_a_label_that_is_not_true(local_profile: WriteProfile, uv: Uv, python: ChosenPython) -> None:
    assert refused(local_profile('torch = "2.11.0+cu129"'), uv, python) == (
        "error[local-label-claim]: torch 2.11.0 of this index is a cu130 build, not cu129\n"
        "  local.toml: packages.torch\n"
        "  its metadata requires cuda-toolkit[cudart]==13.0.2\n"
        '  fix: write "2.11.0+cu130"\n'
    )


def test_a_label_that_nothing_confirms(local_profile: WriteProfile, uv: Uv, python: ChosenPython) -> None:
    assert refused(local_profile('torch = "2.11.1+cu130"'), uv, python) == (
        "error[local-label-claim]: torch 2.11.1 of this index is not known to be a cu130 build\n"
        "  local.toml: packages.torch\n"
        "  its metadata names no CUDA release\n"
        '  fix: write "2.11.1" without the label\n'
    )
