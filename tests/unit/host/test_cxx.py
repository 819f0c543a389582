"""The C++ compiler: which one is found, and what it says it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from envspec.host.cxx import HostCompiler, ask_compiler, find_cxx
from envspec.report.errors import ExternalError
from tests.support.machine import Machine


def machine(root: Path, **environ: str) -> Machine:
    return Machine(root, PATH="bin:/usr/bin:/opt/bin", **environ)


def test_cxx_before_the_usual_names(tmp_path: Path) -> None:
    here = machine(tmp_path).program("/usr/bin/g++").program("/opt/bin/c++").program("/opt/bin/mine")
    assert find_cxx(here) == "/opt/bin/c++"
    for asked, found in (
        ("mine -O2", "/opt/bin/mine"),
        ("/usr/bin/g++", "/usr/bin/g++"),
        ("gone", "/opt/bin/c++"),
    ):
        assert find_cxx(machine(tmp_path, CXX=asked)) == found


def test_a_directory_or_a_plain_file_is_no_compiler(tmp_path: Path) -> None:
    here = machine(tmp_path, CXX="/etc/cxx").directory("/usr/bin/c++").put("/opt/bin/c++").put("/etc/cxx")
    with pytest.raises(ExternalError) as caught:
        find_cxx(here)
    assert caught.value.code == "no-compiler" and caught.value.where == "c++ and g++ on PATH, $CXX=/etc/cxx"


def test_a_relative_path_is_one_of_this_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/cc").symlink_to("/bin/true")
    monkeypatch.chdir(tmp_path / "work")
    from envspec.host.machine import Host

    assert find_cxx(Host(environ={"CXX": "./cc", "PATH": ""})) == f"{tmp_path}/work/./cc"


@pytest.mark.parametrize(
    ("says", "is_"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", ("gcc", (12, 2))),
        ("g++ (GCC) 14.1.1 20240801", ("gcc", (14, 1))),
        ("Debian clang version 14.0.6", ("clang", (14, 0))),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", ("clang", (18, 1))),
        ("x86_64-conda-linux-gnu-c++ (conda-forge gcc 13.3.0-1) 13.3.0", ("gcc", (13, 3))),
        ("no numbers here", None),
        ("", None),
    ],
)
def test_what_compilers_say(tmp_path: Path, says: str, is_: tuple[str, tuple[int, int]] | None) -> None:
    here = machine(tmp_path).program("/usr/bin/c++", says)
    expected = HostCompiler(is_[0], is_[1], "/usr/bin/c++") if is_ else None
    assert ask_compiler(here, "/usr/bin/c++") == expected


def test_a_compiler_that_cannot_be_run(tmp_path: Path) -> None:
    assert ask_compiler(machine(tmp_path), "/usr/bin/c++") is None
