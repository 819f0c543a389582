"""A file that was edited in place in one environment must not get into the next one through uv's cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.host.python import ChosenPython
from envspec.lock.resolve import resolve
from envspec.profile import Profile
from envspec.report.errors import EnvspecError
from envspec.uv.run import Uv
from envspec.venv.install import install
from tests.support.wheels import make_wheel


def test_an_edit_in_another_environment_is_found(
    tmp_path: Path,
    local_profile: Callable[..., Profile],
    python: ChosenPython,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    uv = Uv()
    make_wheel(tmp_path / "wheels", "lib", "1.0", {f"lib/{n}.py": f"value = {n}\n" for n in range(9)})
    profile = local_profile('lib = "1.0"')
    lock = resolve(profile, uv, python.path).lock

    def build(name: str) -> tuple[Path, str]:
        venv = install(profile, lock, python, uv, tmp_path / name / "venv", tmp_path / name / "work")
        return venv.path, venv.site_packages.relative_to(venv.path).as_posix()

    first, site = build("first")
    victim = first / site / "lib" / "3.py"
    for entry in (first / site / "lib").iterdir():
        os.utime(entry, (1_700_000_000, 1_700_000_000))
    with victim.open("r+") as file:
        file.write("value = 7\n")
    with pytest.raises(EnvspecError) as caught:
        build("second")
    assert (caught.value.code, caught.value.what) == (
        "install-corrupt",
        f"{site}/lib/3.py is not the file that its wheel brought",
    )
    assert caught.value.fix.endswith("build again: uv cache clean lib")
