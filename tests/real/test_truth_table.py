"""The truth table of toolkits: what `check` says of a set equals what the compiler says of it. Real wheels, real nvcc."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from envspec.check.facts import CheckInput, Selection, ToolkitReleases
from envspec.check.rules import RULES
from envspec.data.toolkit_components import package_of
from envspec.lock import Lock, LockedPackage
from envspec.lock.selection import Selected
from envspec.lock.targets import Target
from envspec.profile import Profile
from envspec.report.findings import Severity
from envspec.report.rules import run_rules
from envspec.toolkit.layout import plan_tree
from envspec.toolkit.write import write_tree
from envspec.uv.run import find_uv
from envspec.venv.owners import installed_packages

# nvcc, crt, nvvm, runtime, cccl, then what the compiler says of cuda_fp16.h and of cub/cub.cuh: a part of its message,
# or "ok". None: the package is not installed.
ROWS = [
    ("13.2.78", "13.2.78", "13.2.78", "13.2.75", "13.2.75", "ok", "ok", set()),
    ("13.2.78", "13.2.78", "13.2.78", "13.2.75", "13.0.85", "ok", "ok", set()),
    ("13.0.88", "13.0.88", "13.0.88", "13.0.96", "13.0.85", "ok", "ok", set()),
    ("13.2.78", "13.2.78", "13.2.78", "13.2.75", None, "nv/target", "cub/cub.cuh", {"toolkit-incomplete"}),
    ("13.2.78", "13.2.78", "13.2.78", "13.0.96", "13.0.85", "ok", "incompatible", {"toolkit-headers"}),
    ("13.2.78", "13.2.78", "13.2.78", "13.0.96", None, "nv/target", "cub/cub.cuh", {"toolkit-headers", "toolkit-incomplete"}),
    ("13.2.78", "13.2.78", "13.0.88", "13.2.75", "13.2.75", "__cudaLaunch", "__cudaLaunch", {"toolkit-mixed"}),
    ("13.2.78", "13.0.88", "13.2.78", "13.2.75", "13.2.75", "__cudaLaunch", "__cudaLaunch", {"toolkit-mixed"}),
    ("13.2.78", None, None, "13.2.75", "13.2.75", "crt/host_config.h", "crt/host_config.h", {"toolkit-incomplete"}),
]  # fmt: skip
PARTS = ("nvcc", "crt", "nvvm", "cudart", "cccl")
HALF = "#include <cuda_fp16.h>\n__global__ void k(__half *x) { x[0] = __float2half(1.f); }\n"
CUB = """\
#include <cub/cub.cuh>
__global__ void k(int *x) {
    using Reduce = cub::BlockReduce<int, 128>;
    __shared__ typename Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(x[threadIdx.x]);
    if (threadIdx.x == 0) x[0] = sum;
}
"""


def row_id(row: tuple[object, ...]) -> str:
    return "-".join(str(v) for v in row[:5])


def toolkit_rules() -> list[str]:
    return ["toolkit-mixed", "toolkit-headers", "toolkit-incomplete"]


def verdict(versions: dict[str, str], profile: Profile) -> set[str]:
    """The error codes of the toolkit's rules for a set of parts."""
    parts = {**versions, "nvrtc": versions["nvcc"]}
    packages = {part: package_of(part) for part in parts}
    toolkit = ToolkitReleases({p: Version(v) for p, v in parts.items()}, packages)
    chosen = {
        packages[p]: Selected(
            package=LockedPackage(name=packages[p], version=v, marker="", files=()), file=None
        )
        for p, v in parts.items()
    }
    lock = Lock(
        profile_name="",
        profile_digest="",
        python="",
        machines=(),
        exclude_newer="",
        overrides=(),
        packages=(),
    )
    facts: dict[type, object] = {
        ToolkitReleases: toolkit,
        Selection: Selection(target=Target("3.12", "x86_64"), chosen=chosen, required_by={}),
        CheckInput: CheckInput(profile, lock),
    }
    rules = [r for r in RULES.all() if r.code in toolkit_rules()]
    return {f.code for f in run_rules(rules, facts) if f.severity is Severity.ERROR}


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_check_says_what_the_compiler_says(
    row: tuple[Any, ...], tmp_path: Path, local_profile: Callable[..., Profile]
) -> None:
    versions = {part: version for part, version in zip(PARTS, row[:5], strict=True) if version is not None}
    site = tmp_path / "site"
    pins = [f"{package_of(part)}=={version}" for part, version in versions.items()]
    subprocess.run(
        [
            find_uv(),
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            site,
            "--python-version",
            "3.12",
            *pins,
        ],
        check=True,
    )
    home = tmp_path / "cuda"
    write_tree(plan_tree(installed_packages(site)), site, home, b"")
    assert outcome(home, HALF, tmp_path, row[5]) == row[5]
    assert outcome(home, CUB, tmp_path, row[6]) == row[6]
    works = row[5] == row[6] == "ok"
    found = verdict(versions, local_profile('torch = "2.11.0"'))
    assert found == row[7]
    assert bool(found) is not works


def outcome(home: Path, source: str, work: Path, sign: object) -> str:
    """`ok`, or the expected sign if the compiler's message holds it, else the whole message."""
    file = work / "kernel.cu"
    file.write_text(source)
    done = subprocess.run(
        [home / "bin" / "nvcc", "-arch=sm_120a", "-c", file, "-o", work / "kernel.o"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode == 0:
        return "ok"
    message = done.stdout + done.stderr
    return str(sign) if str(sign) in message else message
