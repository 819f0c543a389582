"""Each shell in turn, and one published generation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.shells import SHELLS, Output, Shell, shells


@pytest.fixture(params=shells())
def shell(request: pytest.FixtureRequest) -> Shell:
    """Each shell in turn."""
    return Shell(request.param, SHELLS[request.param])


@pytest.fixture
def out(tmp_path: Path) -> Output:
    """One generation, published."""
    return Output(tmp_path / "out").write(1).switch(1)
