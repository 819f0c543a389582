"""Which file a target gets: the best tag, an sdist only where no wheel fits, and an error where there is nothing."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from envspec.host.python import ChosenPython
from envspec.lock import Lock, LockedFile, LockedPackage
from envspec.lock.selection import best_wheel, needed_files, needed_packages, ranks, select
from envspec.lock.targets import Target
from envspec.report.errors import EnvspecError

HERE = platform.machine()


def package(name: str, *filenames: str, marker: str = "") -> LockedPackage:
    files = tuple(LockedFile(filename, "0" * 64) for filename in filenames)
    return LockedPackage(name=name, version="1.0", marker=marker, files=files)


def lock_of(*packages: LockedPackage) -> Lock:
    return Lock(
        profile_name="p.toml", profile_digest="", python=">=3.10", machines=(HERE,), exclude_newer="",
        overrides=(), packages=packages,
    )  # fmt: skip


def python(minor: str, machine: str = HERE) -> ChosenPython:
    return ChosenPython(
        version=f"{minor}.4", implementation="cpython", machine=machine, path=Path("/python"), headers=True
    )


@pytest.mark.parametrize(
    ("minor", "taken"),
    [
        ("3.10", "a-1.0-cp39-abi3-manylinux_2_17"),
        ("3.12", "a-1.0-cp312-cp312-manylinux_2_28"),
        ("3.14", "a-1.0-cp39-abi3-manylinux_2_17"),
    ],
)
def test_the_best_tag_wins(minor: str, taken: str) -> None:
    names = (
        f"a-1.0-cp312-cp312-manylinux_2_17_{HERE}.whl",
        f"a-1.0-cp312-cp312-manylinux_2_28_{HERE}.whl",
        f"a-1.0-cp39-abi3-manylinux_2_17_{HERE}.whl",
        "a-1.0-py3-none-any.whl",
        "a-1.0.tar.gz",
    )
    for order in (names, names[::-1]):
        assert best_wheel(order, ranks(Target(minor, HERE))) == f"{taken}_{HERE}.whl"
        (found,) = needed_files(lock_of(package("a", *order)), python(minor))
        assert found[1].filename == f"{taken}_{HERE}.whl"


def test_of_equals_the_first_by_name() -> None:
    names = ["b-1.0-2-py3-none-any.whl", "b-1.0-1-py3-none-any.whl"]
    assert best_wheel(names, ranks(Target("3.12", HERE))) == "b-1.0-1-py3-none-any.whl"
    assert best_wheel(["no wheel", "b-1.0.zip"], ranks(Target("3.12", HERE))) is None


def test_an_sdist_only_where_no_wheel_fits() -> None:
    chosen = select(
        lock_of(
            package("a", "a-1.0-cp39-cp39-win_amd64.whl", "a-1.0.tar.gz"),
            package("b", "b-1.0.tar.gz", "b-1.0-py3-none-any.whl"),
            package("c", "c-1.0-cp39-cp39-win_amd64.whl"),
            package("d", "d-1.0-py3-none-any.whl", marker="python_full_version < '3.11'"),
        ),
        Target("3.12", HERE),
    )
    assert {name: one.file and one.file.filename for name, one in chosen.items()} == {
        "a": "a-1.0.tar.gz", "b": "b-1.0-py3-none-any.whl", "c": None,
    }  # fmt: skip


def test_a_machine_that_is_not_this_one() -> None:
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[HERE]
    names = [f"a-1.0-cp312-cp312-manylinux_2_28_{machine}.whl" for machine in (HERE, other)]
    assert best_wheel(names, ranks(Target("3.12", other))) == names[1]


def test_nothing_to_take_is_an_error() -> None:
    lock = lock_of(package("c", "c-1.0-cp39-cp39-win_amd64.whl"))
    assert [p.name for p in needed_packages(lock, python("3.12"))] == ["c"]
    with pytest.raises(EnvspecError) as caught:
        needed_files(lock, python("3.12"))
    assert caught.value.code == "no-wheel"
    with pytest.raises(EnvspecError) as caught:
        needed_packages(lock, python("3.12", machine="riscv64"))
    assert caught.value.code == "machine-not-locked"
