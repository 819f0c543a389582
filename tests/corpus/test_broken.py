"""Failures made here and now by real tools, alone and buried in a long log under the misleading tail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import uv

from tests.support import logs
from tests.support.broken import BROKEN, Broken

NO_LIMIT = 120


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each broken situation printed: filled as the tests ask for it."""
    return {}


def _run(broken: Broken, output: dict[str, str], directory: Path) -> str:
    if broken.name not in output:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "LC_ALL": "C",
            "PYTHON": sys.executable,
            "UV": uv.find_uv_bin(),
        }
        done = subprocess.run(
            ["sh", "-c", broken.script],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=NO_LIMIT,
            check=False,
        )
        output[broken.name] = done.stdout.decode(errors="replace")
    return output[broken.name]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda b: b.name)
def test_alone(broken: Broken, output: dict[str, str], tmp_path: Path) -> None:
    log = _run(broken, output, tmp_path)
    answer = logs.of(log)
    assert answer.verdict == "cause-found", log
    assert answer.cause is not None
    assert broken.expected in answer.cause.text, log


@pytest.mark.parametrize("broken", BROKEN, ids=lambda b: b.name)
def test_buried(broken: Broken, output: dict[str, str], tmp_path: Path) -> None:
    log = _run(broken, output, tmp_path)
    answer = logs.of(logs.buried(log))
    assert answer.verdict == "cause-found", log
    assert answer.cause is not None
    assert broken.expected in answer.cause.text, log
    assert any("--mem-fraction-static" in row.text for row in answer.misleading)
