"""A file that was edited in place in one environment must not get into the next one through uv's cache."""

from __future__ import annotations

import hashlib
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
from envspec.venv.inventory import StatRow, read_tree, take_inventory
from envspec.venv.owners import OwnedFile
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


SITE = "lib/python3.12/site-packages"
UNPACKED = 1_700_000_000


def venv_of(root: Path, files: dict[str, tuple[str, int]]) -> tuple[dict[str, StatRow], dict[str, OwnedFile]]:
    """A venv of one package: each file has another text than RECORD says if its text says so, and an age in seconds."""
    owned = {}
    for path, (text, seconds) in files.items():
        target = root / SITE / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        os.utime(target, (UNPACKED + seconds, UNPACKED + seconds))
        recorded = hashlib.sha256(text.replace("edited", "wheels").encode()).hexdigest()
        owned[f"{SITE}/{path}"] = OwnedFile("lib", recorded, len(text))
    return read_tree(root), owned


CASES = [
    ({"a.py": ("wheels", 0), "b.py": ("wheels", 0), "c.py": ("wheels", 5000)}, ""),
    ({"a.py": ("wheels", 0), "b.py": ("wheels", 0), "c.py": ("edited", 61)}, "c.py"),
    ({"a.py": ("edited", 3600)}, ""),  # its only file: nothing tells when it was unpacked
    ({"a.py": ("wheels", 0), "b.py": ("edited", 59)}, ""),  # as young as its siblings: not seen
    ({"a.py": ("wheels", 0), "b.py": ("edited", -5000)}, ""),  # the time was put back: not seen
    ({"a.py": ("wheels", 0), "b.py": ("wheels", 0), "c/__pycache__/c.pyc": ("edited", 5000)}, ""),
]


@pytest.mark.parametrize(("files", "found"), CASES)
def test_a_file_that_is_younger_than_its_siblings_is_read(
    tmp_path: Path, files: dict[str, tuple[str, int]], found: str
) -> None:
    tree, owned = venv_of(tmp_path, files)
    if not found:
        assert len(take_inventory(tmp_path, SITE, tree, owned, []).rows) == len(tree)
        return
    with pytest.raises(EnvspecError) as caught:
        take_inventory(tmp_path, SITE, tree, owned, [])
    assert (caught.value.code, caught.value.what) == (
        "install-corrupt",
        f"{SITE}/{found} is not the file that its wheel brought",
    )


def test_a_file_that_was_cut_short(tmp_path: Path) -> None:
    tree, owned = venv_of(tmp_path, {"a.py": ("wheels", 0)})
    owned[f"{SITE}/a.py"] = owned[f"{SITE}/a.py"]._replace(size=100)
    with pytest.raises(EnvspecError, match=r"a\.py has 6 bytes, RECORD says 100"):
        take_inventory(tmp_path, SITE, tree, owned, [])
