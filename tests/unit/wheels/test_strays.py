"""Which contested paths nobody imports."""

from __future__ import annotations

from envspec.wheels.strays import main_directory, strays

ONE = ["one/__init__.py", "one/a.py", "build_backend.py", "one-1.dist-info/RECORD"]
TWO = ["two/__init__.py", "two/a.py", "build_backend.py", "tests/a.py"]


def test_a_package_lives_where_most_of_its_files_are() -> None:
    assert main_directory(ONE) == "one"
    assert main_directory(["six.py", "six-1.dist-info/METADATA"]) == "six.py"
    assert main_directory(["../../../bin/tool", "x-1.data/scripts/tool"]) == ""


def test_what_lies_outside_of_all_main_directories_is_a_stray() -> None:
    contested = {"build_backend.py": ["one", "two"]}
    assert strays(contested, {"one": ONE, "two": TWO}) == {"build_backend.py"}


def test_a_shared_main_directory_is_none() -> None:
    paths = ["nvidia/nccl/lib/libnccl.so.2", "nvidia/nccl/include/nccl.h"]
    contested = {path: ["nvidia-nccl-cu12", "nvidia-nccl-cu13"] for path in paths}
    assert strays(contested, {"nvidia-nccl-cu12": paths, "nvidia-nccl-cu13": paths}) == frozenset()


def test_one_package_in_the_main_directory_of_another() -> None:
    guest = ["guest/a.py", "guest/b.py", "host/patched.py"]
    host = ["host/a.py", "host/patched.py"]
    assert strays({"host/patched.py": ["guest", "host"]}, {"guest": guest, "host": host}) == frozenset()


def test_the_head_of_a_namespace_is_a_stray_and_that_of_a_package_is_not() -> None:
    apart = {"a": ["ns/__init__.py", "ns/a/x.py"], "b": ["ns/__init__.py", "ns/b/x.py"]}
    assert strays({"ns/__init__.py": ["a", "b"]}, apart) == {"ns/__init__.py"}
    same = {"a": ["ns/__init__.py", "ns/core/x.py"], "b": ["ns/__init__.py", "ns/core/y.py"]}
    assert strays({"ns/__init__.py": ["a", "b"]}, same) == frozenset()
