"""What holds for all tests: the world they run in, time limits, and fixtures that many use.

A lane is a directory. `pytest` alone runs the quick ones (pyproject.toml); the dear ones are named: `pytest tests/real`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from envspec.host.python import ChosenPython, ask
from envspec.profile import Profile, read_profile
from envspec.uv.run import Uv

# How long one example takes says more about the machine than about the code.
settings.register_profile("envspec", deadline=None)
settings.load_profile("envspec")


@pytest.fixture(scope="session")
def python() -> ChosenPython:
    """The interpreter that runs the tests."""
    return ask(Path(sys.executable))


# What the machine of whoever runs the tests may have set, and what would show in their outcome.
NOT_OURS = (
    "CUDA_HOME",
    "CUDA_PATH",
    "CXX",
    "CC",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "FORCE_COLOR",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "LINES",
    "MAX_JOBS",
    "NO_COLOR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
)
# Seconds for one test of the dear lanes.
LIMITS = {"real": 900, "faults": 600, "acceptance": 3600}


@pytest.fixture(scope="session", autouse=True)
def own_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's envspec cache or sees the user's settings.

    uv's cache is shared on purpose: it holds the real wheels.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENVSPEC_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "envspec-cache"))
        for name in NOT_OURS:
            patch.delenv(name, raising=False)
        patch.setenv("LANG", "C.UTF-8")
        patch.setenv("TERM", "dumb")
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of the dear lanes their time."""
    here = Path(__file__).parent
    for item in items:
        lane = item.path.relative_to(here).parts[0]
        if lane in LIMITS and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMITS[lane]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With ENVSPEC_TEST_INSIST=1 nothing is skipped: what was not tested has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("ENVSPEC_TEST_INSIST"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: nothing may be skipped here (ENVSPEC_TEST_INSIST): {reason}"
    return report


@pytest.fixture
def uv() -> Uv:
    """The real uv."""
    return Uv()


@pytest.fixture
def local_profile(tmp_path: Path) -> Callable[..., Profile]:
    """Writes a profile whose only index is `tmp_path/wheels`, and reads it."""

    def write(packages: str, more: str = "") -> Profile:
        (tmp_path / "wheels").mkdir(exist_ok=True)
        path = tmp_path / "local.toml"
        path.write_text(
            f'[gpu]\narch = "12.0a"\n[packages]\n{packages}\n{more}\n'
            '[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n',
            encoding="utf-8",
        )
        return read_profile(path)

    return write
