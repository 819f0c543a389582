"""The first profile and what people do to it: each spoilt profile is refused for the right reason, and `--fix` mends it.

Through the command line, on the real index; nothing is installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from envspec.data.shipped import shipped

FIRST = (shipped("profiles") / "rtx-pro-6000.toml").read_text(encoding="utf-8")
WITHOUT_CUDA = re.sub(r"\[cuda\]\n.*?\n\n", "", FIRST, flags=re.DOTALL)

SPOILT = {
    "torch 2.12.0": (
        FIRST.replace("2.11.0+cu130", "2.12.0+cu130"),
        {"unsatisfiable", "torch-abi", "requirement-broken"},
    ),
    "sglang-kernel 0.4.6.post1": (
        FIRST.replace("0.4.2.post2", "0.4.6.post1"),
        {"newer-than-date", "torch-abi", "requirement-broken"},
    ),
    "nvcc pinned, the rest not": (
        WITHOUT_CUDA.replace('ninja = "*"', 'ninja = "*"\nnvidia-cuda-nvcc = "13.2.78"'),
        {"toolkit-headers"},
    ),
    "runtime 13.0.96": (
        FIRST.replace('ninja = "*"', 'ninja = "*"\nnvidia-cuda-runtime = "13.0.96"'),
        {"toolkit-headers"},
    ),
    "no cccl, no flashinfer": (
        FIRST.replace(', "cccl"', "").replace('sglang = "0.5.12.post1"\n', ""),
        {"toolkit-incomplete"},
    ),
    "no precedence": (re.sub(r"precedence = \[.*\]", "precedence = []", FIRST), {"file-conflict"}),
    "plain sglang 0.5.14": (
        '[gpu]\narch = "12.0a"\nminimum-driver = "580.65.06"\n[python]\nversions = ">=3.10,<3.13"\n'
        '[packages]\nsglang = "0.5.14"\n',
        {"toolkit-headers", "toolkit-mixed", "file-conflict"},
    ),
}


def check(profile: Path, *options: str) -> tuple[int, dict[str, list[dict[str, object]]], str]:
    done = subprocess.run(
        [sys.executable, "-m", "envspec", "check", str(profile), "--json", *options],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.startswith("{"), done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def errors(report: dict[str, list[dict[str, object]]]) -> set[object]:
    return {f["code"] for f in report["findings"] if f["severity"] == "error"}


def test_the_first_profile_passes_without_a_false_warning() -> None:
    code, report, _ = check(shipped("profiles") / "rtx-pro-6000.toml")
    assert code == 0
    assert {(f["code"], f["severity"], f["subject"]) for f in report["findings"]} == {
        # tilelang's one large library has its symbol table at the end: only the audit can tell, and that is said.
        ("torch-abi", "unknown", "tilelang"),
        ("file-conflict", "note", "flashinfer-python"),
        ("file-conflict", "note", "nvidia-cutlass-dsl-libs-cu13"),
    }


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_profile_is_refused_and_mended(name: str, tmp_path: Path) -> None:
    text, codes = SPOILT[name]
    assert text != FIRST
    profile = tmp_path / "p.toml"
    profile.write_text(text, encoding="utf-8")
    code, report, _ = check(profile)
    assert (code, errors(report)) == (1, codes)
    for finding in report["findings"]:
        if finding["severity"] == "error" and finding["code"] not in (
            "unsatisfiable",
            "newer-than-date",
            "toolkit-incomplete",
        ):
            assert finding["dependency_paths"], finding
    assert profile.read_text(encoding="utf-8") == text, "a check writes nothing"
    code, report, shown = check(profile, "--fix")
    assert (code, errors(report)) == (0, set())
    assert "+++ p.toml" in shown
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert [line for line in profile.read_text().splitlines() if line.startswith("#")] == comments


def test_the_shipped_lock_is_what_the_index_gives_again(tmp_path: Path) -> None:
    """Byte for byte, months later and from nothing: the date in the profile holds the rest of the world still."""
    profile = tmp_path / "rtx-pro-6000.toml"
    profile.write_text(FIRST, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "envspec", "lock", str(profile)], check=True, capture_output=True, timeout=600
    )
    assert (
        profile.with_suffix(".lock").read_bytes() == (shipped("profiles") / "rtx-pro-6000.lock").read_bytes()
    )
