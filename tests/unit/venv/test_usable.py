"""An interpreter that cannot be used, known without starting it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envspec.venv.usable import unusable_python


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A venv for Python 3.11 whose interpreter lies elsewhere."""
    (tmp_path / "home").mkdir()
    real = tmp_path / "home" / "python3.11"
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(real)
    (venv / "pyvenv.cfg").write_text("home = /x\nversion_info = 3.11.7\n")
    return venv


def test_a_usable_interpreter(venv: Path) -> None:
    assert unusable_python(venv) == ""


def test_gone(venv: Path) -> None:
    real = (venv / "bin/python").resolve()
    real.unlink()
    assert unusable_python(venv) == f"leads to {real}, which is not there"
    (venv / "bin/python").unlink()
    assert unusable_python(venv) == "is not there"


def test_not_executable(venv: Path) -> None:
    real = (venv / "bin/python").resolve()
    real.chmod(0o644)
    assert unusable_python(venv) == f"leads to {real}, which cannot be executed"


def test_another_minor_in_its_place(venv: Path) -> None:
    real = (venv / "bin/python").resolve()
    other = real.rename(real.with_name("python3.12"))
    real.symlink_to(other)
    assert unusable_python(venv) == f"leads to {other}, and the environment was made for Python 3.11"


@pytest.mark.parametrize("text", ["", "home = /x\n"])
def test_no_version(venv: Path, text: str) -> None:
    (venv / "pyvenv.cfg").write_text(text)
    assert "pyvenv.cfg" in unusable_python(venv)
