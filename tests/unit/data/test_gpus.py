"""GPUs by the names that people type and that drivers report."""

from __future__ import annotations

from pathlib import Path

import pytest

from envspec.data.architectures import known_archs
from envspec.data.gpus import gpu_reported, gpu_typed, known_gpus
from envspec.profile import read_profile
from envspec.report.errors import UsageError


@pytest.mark.parametrize(
    ("reported", "compiles_for"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0a"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0a"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0a"),
        ("NVIDIA RTX PRO 4000 Blackwell SFF Edition", "12.0a"),
        ("NVIDIA GeForce RTX 5090", "12.0a"),
        ("NVIDIA GeForce RTX 5070 Ti Laptop GPU", "12.0a"),
        ("NVIDIA GB10", "12.1a"),
        ("NVIDIA Thor", "11.0a"),
        ("NVIDIA B300 SXM6 AC", "10.3a"),
        ("NVIDIA GB300", "10.3a"),
        ("NVIDIA B200", "10.0a"),
        ("NVIDIA GB200", "10.0a"),
        ("NVIDIA H200", "9.0a"),
        ("NVIDIA H100 80GB HBM3", "9.0a"),
        ("NVIDIA H20-3e", "9.0a"),
        ("NVIDIA GH200 480GB", "9.0a"),
        ("NVIDIA L40S", "8.9"),
        ("NVIDIA L4", "8.9"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA GeForce RTX 4090", "8.9"),
        ("NVIDIA RTX A6000", "8.6"),
        ("NVIDIA A10G", "8.6"),
        ("NVIDIA GeForce RTX 3090", "8.6"),
        ("Orin (nvgpu)", "8.7"),
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("Tesla T4", "7.5"),
    ],
)
def test_what_drivers_report(reported: str, compiles_for: str) -> None:
    row = gpu_reported(reported)
    assert row is not None and str(row.compiles_for) == compiles_for


@pytest.mark.parametrize("reported", ["NVIDIA Graphics Device", "", "NVIDIA RTX 9999", "AMD Instinct MI300X"])
def test_a_name_that_no_row_has_is_not_guessed(reported: str) -> None:
    assert gpu_reported(reported) is None


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("rtx5090", "RTX 50 series"),
        ("5090", "RTX 50 series"),
        ("RTX PRO 6000", "RTX PRO 6000 Blackwell"),
        ("rtx 6000 pro", "RTX PRO 6000 Blackwell"),
        ("h100", "H100"),
        ("spark", "DGX Spark (GB10)"),
        ("gb10", "DGX Spark (GB10)"),
        ("thor", "Jetson Thor"),
        ("L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 40 series"),
    ],
)
def test_what_people_type(typed: str, name: str) -> None:
    row = gpu_typed(typed)
    assert row is not None and row.name == name


def test_every_row_is_found_by_its_own_names_and_has_a_known_architecture() -> None:
    known = {row.arch for row in known_archs()}
    for row in known_gpus():
        assert row.arch in known
        for name in (row.name, *row.also):
            assert gpu_typed(name) == row, name


def test_a_trade_name_as_architecture_is_answered_with_the_architecture(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('[gpu]\narch = "RTX 5090"\n[packages]\ntorch = "2.11.0"\n')
    with pytest.raises(UsageError) as caught:
        read_profile(path)
    assert caught.value.fix == 'the RTX 50 series has: arch = "12.0a"'
