"""Fixtures of all tests: a profile over a directory of tiny wheels, and the interpreter that builds use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture(scope="session", autouse=True)
def own_envspec_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's envspec cache; uv's cache is shared on purpose, it holds the real wheels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENVSPEC_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "envspec-cache"))
        for name in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "MAX_JOBS", "PYTHONPATH"):
            patch.delenv(name, raising=False)
        yield


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
