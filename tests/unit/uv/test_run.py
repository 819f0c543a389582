"""uv as a frozen value: what it hears, what it is given, and what its calls return."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envspec.profile.model import Index
from envspec.uv.project import UvProject
from envspec.uv.run import Uv, withheld_variables
from tests.support.wheels import make_wheel


def test_it_cannot_be_changed_from_outside() -> None:
    uv = Uv(base_env={})
    with pytest.raises(AttributeError):
        uv.reporter = print  # type: ignore[misc]
    with pytest.raises(AttributeError):
        uv.inherit_fds = (3,)  # type: ignore[misc]


def test_another_reporter_is_another_uv() -> None:
    heard: list[str] = []
    uv = Uv(base_env={"PATH": "/usr/bin:/bin"})
    loud = uv.with_reporter(heard.append)
    assert loud is not uv and loud.binary == uv.binary and loud.env == uv.env
    assert loud.inheriting(3).inheriting(4).inherit_fds == (3, 4) and loud.inherit_fds == ()


def test_what_would_change_a_resolution_is_not_passed_on() -> None:
    uv = Uv(base_env={"UV_RESOLUTION": "lowest", "UV_INDEX_URL": "mirror", "HOME": "/home/me"}, offline=True)
    assert "UV_RESOLUTION" not in uv.env
    assert uv.env["UV_INDEX_URL"] == "mirror" and uv.env["HOME"] == "/home/me"
    assert uv.env["UV_OFFLINE"] == "1" and uv.env["UV_PYTHON_DOWNLOADS"] == "never"


def test_a_lock_returns_what_uv_said_and_tells_it_as_it_comes(tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "lib", "1.0")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "profile"\nversion = "0"\nrequires-python = ">=3.10"\ndependencies = ["lib[extra]"]\n'
        '[tool.uv]\npackage = false\n[[tool.uv.index]]\nurl = "wheels"\nformat = "flat"\ndefault = true\n'
    )
    heard: list[str] = []
    uv = Uv(base_env=os.environ, offline=True, reporter=heard.append)
    messages = uv.lock(tmp_path, Path(sys.executable), None)
    assert any("does not have an extra named `extra`" in line for line in messages)
    assert heard == list(messages)
    assert uv.export(tmp_path, Path(sys.executable)).startswith("lib==1.0")


def test_the_cache_is_where_uv_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv is asked: only it reads the user's uv.toml."""
    (tmp_path / "config/uv").mkdir(parents=True)
    (tmp_path / "config/uv/uv.toml").write_text(f'cache-dir = "{tmp_path}/from-toml"\n')
    path = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}

    def cache(**env: str) -> Path:
        return Uv(base_env={**path, **env}).cache_directory()

    assert cache() == tmp_path / "home/.cache/uv"
    assert cache(XDG_CACHE_HOME=str(tmp_path)) == tmp_path / "uv"
    assert cache(XDG_CONFIG_HOME=str(tmp_path / "config")) == tmp_path / "from-toml"
    assert cache(UV_CACHE_DIR=str(tmp_path / "x"), XDG_CONFIG_HOME=str(tmp_path / "config")) == tmp_path / "x"
    monkeypatch.chdir(tmp_path)
    assert cache(UV_CACHE_DIR="relative") == tmp_path / "relative"
    assert cache(UV_CONFIG_FILE="config/uv/uv.toml") == tmp_path / "from-toml"


def test_the_variables_that_uv_does_not_get_are_ones_that_it_knows() -> None:
    """Those that are uv's own; the others are those of Python, of shells and of other tools that it looks at."""
    program = Uv(base_env={}).binary.read_bytes()
    own = [name for name in withheld_variables() if name.startswith("UV_")]
    assert len(own) > 20 and [name for name in own if name.encode() not in program] == []


@pytest.mark.parametrize(
    "variable",
    [
        "UV_NO_CONFIG=1",
        "UV_NO_GROUP=x",
        "UV_RESOLUTION=lowest",
        "UV_PRERELEASE=if-necessary",
        "UV_FROZEN=1",
        "UV_ISOLATED=1",
    ],
)
def test_a_lock_is_the_same_whatever_the_caller_has_set(tmp_path: Path, variable: str) -> None:
    for version in ("1.0", "2.0"):
        make_wheel(tmp_path / "wheels", "lib", version)
    index = Index(name="local", url=str(tmp_path / "wheels"), default=True, flat=True)
    UvProject(requires_python=">=3.10", requirements=("lib",), indexes=(index,)).write(tmp_path / "project")
    name, _, value = variable.partition("=")
    uv = Uv(base_env={**os.environ, name: value}, offline=True)
    uv.lock(tmp_path / "project", Path(sys.executable), None)
    assert uv.export(tmp_path / "project", Path(sys.executable)).startswith("lib==2.0")
