"""The project that uv gets: every field, and texts that would break out of a badly quoted one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envspec.data import load_toml
from envspec.profile import Profile
from envspec.profile.model import Index
from envspec.uv.project import UvProject, installation_project, resolution_project
from envspec.uv.run import Uv
from tests.support.wheels import make_wheel


def uv_table(project: UvProject) -> dict[str, Any]:
    found: dict[str, Any] = load_toml(project.text)["tool"]["uv"]
    return found


def test_an_empty_project_leaves_everything_to_uv() -> None:
    assert UvProject().text == (
        '[project]\nname = "profile"\nversion = "0"\ndependencies = []\n[tool.uv]\npackage = false\nno-build = true\n'
    )


def test_all_of_it() -> None:
    project = UvProject(
        requires_python=">=3.10",
        requirements=("torch==2.11.0", "ninja ; platform_machine == 'x86_64'"),
        overrides=("nvidia-cuda-runtime==13.2.75",),
        machines=("x86_64",),
        indexes=(
            Index(name="a", url="https://a/simple", default=True),
            Index(name="b", url="wheels", explicit=True, flat=True),
        ),
        sources=(("torch", "b"),),
        exclude_newer="2026-05-25T00:00:00Z",
        any_date=("torch",),
        allow_sdists=True,
    )
    assert project.text == (
        """\
[project]
name = "profile"
version = "0"
requires-python = ">=3.10"
dependencies = ["torch==2.11.0", "ninja ; platform_machine == 'x86_64'"]
[tool.uv]
package = false
no-build = false
exclude-newer = "2026-05-25T00:00:00Z"
exclude-newer-package = { "torch" = "2100-01-01T00:00:00Z" }
environments = ["sys_platform == 'linux' and platform_machine == 'x86_64'"]
override-dependencies = ["nvidia-cuda-runtime==13.2.75"]
[[tool.uv.index]]
name = "a"
url = "https://a/simple"
default = true
explicit = false
[[tool.uv.index]]
name = "b"
url = "wheels"
default = false
explicit = true
format = "flat"
[tool.uv.sources]
"torch" = { index = "b" }
"""
    )


@pytest.mark.parametrize("text", ['"', "\\", "a\nb", "\x7f", "\x00", "é😀", '"]\n[tool.evil]'])
def test_texts_are_quoted(text: str) -> None:
    project = UvProject(requirements=(text,), indexes=(Index(name=text, url=text),), sources=((text, text),))
    table = uv_table(project)
    assert load_toml(project.text)["project"]["dependencies"] == [text]
    assert table["index"][0]["url"] == text and table["sources"] == {text: {"index": text}}


def test_for_an_installation_every_index_serves_every_package() -> None:
    table = uv_table(installation_project((Index(name="a", url="u", explicit=True, flat=True),)))
    assert table["index"] == [
        {"name": "a", "url": "u", "default": False, "explicit": False, "format": "flat"}
    ]
    assert table["no-build"] is False and "sources" not in table


def test_uv_takes_it(tmp_path: Path, local_profile: Callable[..., Profile]) -> None:
    """An override, a source and a machine, as a profile asks for them."""
    for version in ("1.0", "2.0"):
        make_wheel(tmp_path / "wheels", "lib", version)
    make_wheel(tmp_path / "wheels", "app", "1.0", requires=["lib<2"])
    profile = local_profile('app = { version = "1.0", index = "local" }')
    project = resolution_project(profile, ["app==1.0"], ["lib==2.0"])
    project.write(tmp_path / "project")
    uv = Uv(offline=True)
    uv.lock(tmp_path / "project", Path(sys.executable), None)
    exported = uv.export(tmp_path / "project", Path(sys.executable)).splitlines()
    assert [line.partition(" ;")[0] for line in exported if "==" in line] == ["app==1.0", "lib==2.0"]
