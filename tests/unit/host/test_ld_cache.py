"""The loader's cache, made by hand and this machine's own, and the order in which libraries are found."""

from __future__ import annotations

import platform
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envspec.host.ld_cache import candidates, find, own_cache, parse_cache, system_directories
from tests.support.machine import Machine, cache

HERE = platform.machine()


@given(st.binary(max_size=200))
def test_any_content_is_read_without_failing(tail: bytes) -> None:
    for head in (b"", b"glibc-ld.so.cache1.1", b"ld.so-1.7.0\0\xff\xff\xff\xff"):
        parse_cache(head + tail, "x86_64")


def test_this_machines_own() -> None:
    if not Path("/etc/ld.so.cache").exists():
        pytest.skip("no ld.so.cache here")
    assert Path(own_cache(HERE)["libc.so.6"]).exists()


def test_the_old_form_before_it_is_passed_over() -> None:
    new = cache({"libcuda.so.1": "/x/libcuda.so.1"})
    old = b"ld.so-1.7.0\0" + (1).to_bytes(4, "little") + b"\0" * 12
    assert parse_cache(old + b"\0" * (-len(old) % 8) + new, HERE) == {"libcuda.so.1": "/x/libcuda.so.1"}


def test_other_machines_and_processor_extras_are_passed_over() -> None:
    data = bytearray(cache({"liba.so": "/a", "libb.so": "/b", "libc.so": "/c"}))
    flags, extras = struct.Struct("<i"), struct.Struct("<Q")
    flags.pack_into(data, 48, 0x0003)  # 32 bits
    extras.pack_into(data, 48 + 24 + 16, 1 << 62)  # glibc-hwcaps
    assert parse_cache(bytes(data), HERE) == {"libc.so": "/c"}
    assert parse_cache(bytes(data), "riscv64") == {} and system_directories("s390x") == ()


def test_a_count_that_lies_is_bounded() -> None:
    data = bytearray(cache({"liba.so": "/a"}))
    struct.pack_into("<I", data, 20, 0xFFFFFFFF)
    assert parse_cache(bytes(data), HERE)["liba.so"] == "/a"


def test_the_order(tmp_path: Path) -> None:
    last = f"{system_directories(HERE)[0]}/libx.so"
    machine = Machine(tmp_path, LD_LIBRARY_PATH="relative::/first/")
    for path in ("/first/libx.so", "/cached/libx.so", last):
        machine.put(path)
    machine.put("/etc/ld.so.cache", cache({"libx.so": "/cached/libx.so", "libgone.so": "/gone"}))
    assert list(candidates(machine, "libx.so")) == [
        ("/first/libx.so", "LD_LIBRARY_PATH"),
        ("/cached/libx.so", "ldconfig's cache"),
        (last, "the system's directories"),
    ]
    assert find(machine, "libgone.so") is None
