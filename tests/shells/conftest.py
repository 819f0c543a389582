"""Each shell in turn, and one published generation."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.shells import SHELLS, Output, Shell


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Shell:
    """Each shell in turn. A missing one is a failure: what was not sourced was not tested."""
    return _shell(request.param)


def _shell(name: str) -> Shell:
    command = SHELLS[name]
    if shutil.which(command[0]) is None:
        pytest.fail(f"{command[0]} is not installed: run `make deps`, or apt-get install {command[0]}")
    return Shell(name, command)


@pytest.fixture
def all_shells() -> tuple[Shell, ...]:
    """All of them, for tests that loop."""
    return tuple(_shell(name) for name in SHELLS)


@pytest.fixture
def out(tmp_path: Path) -> Output:
    """One generation, published."""
    return Output(tmp_path / "out").write(1).switch(1)
