"""A RECORD that is wrong in the wheel itself is the wheel's fault; what differs from the wheel is damage."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.fs import file_sha256
from envspec.host.python import ChosenPython
from envspec.lock.resolve import resolve
from envspec.profile import Profile
from envspec.report.errors import EnvspecError
from envspec.uv.run import Uv
from envspec.venv.install import install
from envspec.wheels.access import access_of
from envspec.wheels.contents import contents_of
from envspec.wheels.file import ResolvedFile
from tests.support.wheels import make_wheel

WriteProfile = Callable[..., Profile]


def spoil_record(wheel: Path) -> None:
    """Let RECORD say another size of one file; the archive's own directory stays right."""
    with zipfile.ZipFile(wheel) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in content.items():
            if name.endswith("/RECORD"):
                data = b"\n".join(
                    line + b"0" if line.startswith(b"app.py,") else line for line in data.split(b"\n")
                )
            archive.writestr(name, data)


@pytest.mark.parametrize("known", [True, False])
def test_the_archive_is_the_truth(
    known: bool, local_profile: WriteProfile, tmp_path: Path, uv: Uv, python: ChosenPython
) -> None:
    wheel = make_wheel(tmp_path / "wheels", "app", "1.0", {"app.py": "one = 1\n"})
    spoil_record(wheel)
    profile = local_profile('app = "1.0"')
    lock = resolve(profile, uv, python.path).lock
    if known:
        file = ResolvedFile(
            filename=wheel.name, url=wheel.as_uri(), sha256=file_sha256(wheel), size=0, uploaded=""
        )
        contents_of("app", file, access_of(profile, uv), thorough=False, offline=True)
    (tmp_path / "work").mkdir()
    if known:
        venv = install(profile, lock, python, uv, tmp_path / "venv", tmp_path / "work")
        (path,) = venv.misrecorded
        (row,) = [row for row in venv.inventory.rows if row.path == path]
        assert path.endswith("/app.py") and row.sha256 == file_sha256(venv.path / path) and row.counted
        return
    with pytest.raises(EnvspecError) as caught:  # without the archive's word it may as well be damage
        install(profile, lock, python, uv, tmp_path / "venv", tmp_path / "work")
    assert caught.value.code == "install-corrupt"
