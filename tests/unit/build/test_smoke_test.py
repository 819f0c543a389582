"""The smoke's way of running compilers, where compilers misbehave."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from envspec.build import smoke_test as smoke
from envspec.host.commands import Command
from envspec.report.errors import StageError


def shell(script: str) -> Command:
    return Command(arguments=("sh", "-c", script), environment=os.environ)


def ended(state: Path) -> bool:
    """Whether a process ends; a killed one may still have to be taken off a processor."""
    for _ in range(100):
        try:
            if state.read_text().split()[2] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def test_a_compiler_that_hangs_is_ended_with_all_that_it_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it called holds the pipe open: to end the compiler alone would mean to wait for the other."""
    monkeypatch.setattr(smoke, "_TIMEOUT", 0.3)
    called = tmp_path / "called"
    started = time.monotonic()
    with pytest.raises(StageError) as caught:
        smoke._run(
            "smoke-compile",
            "nvcc did not compile a kernel",
            shell(f"sleep 60 & echo $! > '{called}'; wait"),
        )
    assert time.monotonic() - started < 10
    assert caught.value.what == "nvcc did not compile a kernel within 0.3 s"
    state = Path(f"/proc/{called.read_text().strip()}/stat")
    assert ended(state)


def test_what_a_compiler_says_is_quoted_without_what_steers_terminals(tmp_path: Path) -> None:
    with pytest.raises(StageError) as caught:
        smoke._run(
            "smoke-link",
            "it failed",
            shell("printf 'bad \\033[31m\\n\\n'; exit 3"),
        )
    assert (caught.value.what, caught.value.why) == ("it failed (exit 3)", "bad ?[31m")
