"""Files that lie: always one ElfError, within bounds of time and memory."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envspec.elf import Elf, ElfError, ElfIncomplete, SymbolTable, read, read_prefix, read_sections
from tests.unit.elf.conftest import SOURCE, VERSIONED, strip_section_headers

Build = Callable[..., Path]


def read_all(elf: Elf) -> None:
    """Ask for everything that is decoded lazily."""
    symbols = elf.symbols
    _ = (symbols.exports, symbols.imports, symbols.weak_imports, symbols.defined, symbols.undefined)
    _ = (symbols.exports_by_version, symbols.imports_by_version)
    if not elf.partial:
        _ = (elf.soname, elf.needed, elf.rpath, elf.runpath, elf.version_needs, elf.version_definitions)


def survives(data: bytes, size: int | None = None) -> None:
    """The reader answers, or raises ElfError."""
    try:
        read_all(read_prefix(data, len(data) if size is None else size))
    except ElfError as error:
        assert error.code.startswith("elf-")
        assert error.reason


@pytest.fixture(scope="module")
def small_files(compile_library: Build) -> list[bytes]:
    files = [
        compile_library(SOURCE, "-lm", "-Wl,-soname,x.so", "-Wl,--hash-style=both"),
        compile_library(VERSIONED, "-Wl,--version-script=demo.map"),
        compile_library("int f(void) { return 1; }", "-nostdlib", "-Wl,--hash-style=gnu"),
    ]
    files += [strip_section_headers(path) for path in files]
    return [path.read_bytes() for path in files]


@given(st.binary(max_size=512))
def test_random_bytes(data: bytes) -> None:
    survives(data)
    survives(b"\x7fELF\x02\x01\x01" + data)


NASTY = [0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF]


@settings(max_examples=600, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=2000)
@given(
    which=st.integers(0, 5),
    changes=st.lists(
        st.tuples(st.integers(0, 1 << 16), st.sampled_from([1, 2, 4, 8]), st.sampled_from(NASTY)), max_size=6
    ),
    cut=st.none() | st.integers(0, 1 << 16),
)
def test_mutations(
    small_files: list[bytes], which: int, changes: list[tuple[int, int, int]], cut: int | None
) -> None:
    data = bytearray(small_files[which])
    for place, width, value in changes:
        at = place % (len(data) - 8)
        data[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
    size = len(data)
    survives(bytes(data[: cut % size] if cut is not None else data), size)


def test_each_byte_of_the_headers_and_of_dynamic(small_files: list[bytes]) -> None:
    for data in small_files:
        phoff, phnum = struct.unpack_from("<Q", data, 0x20)[0], struct.unpack_from("<H", data, 0x38)[0]
        places = set(range(64 + 56 * phnum))
        for number in range(phnum):
            kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", data, phoff + 56 * number)
            if kind == 2:
                places |= set(range(offset, offset + size))
        for at in sorted(places):
            for value in (0x00, 0xFF):
                survives(data[:at] + bytes([value]) + data[at + 1 :])


def test_truncation_everywhere(small_files: list[bytes], tmp_path: Path) -> None:
    data = small_files[0]
    for length in range(0, len(data), 61):
        (tmp_path / "x.so").write_bytes(data[:length])
        with pytest.raises(ElfError) as caught:
            elf = read(tmp_path / "x.so")
            # What is cut behind the dynamic tables does not matter to the loader either.
            read_all(elf)
            assert elf.symbols.exports == read_prefix(data, len(data)).symbols.exports
            raise ElfError("elf-fine", "only the section headers are gone")
        assert caught.value.code in {"elf-not-elf", "elf-truncated", "elf-malformed", "elf-fine"}


def test_a_huge_sparse_file_is_not_read(tmp_path: Path, small_files: list[bytes]) -> None:
    data = bytearray(small_files[2])
    phoff, phnum = struct.unpack_from("<Q", data, 0x20)[0], struct.unpack_from("<H", data, 0x38)[0]
    for number in range(phnum):
        if struct.unpack_from("<I", data, phoff + 56 * number)[0] == 2:
            struct.pack_into("<Q", data, phoff + 56 * number + 32, 1 << 40)  # .dynamic: one terabyte
    path = tmp_path / "x.so"
    path.write_bytes(data)
    with path.open("r+b") as file:
        file.truncate(1 << 41)
    with pytest.raises(ElfError) as caught:
        read(path)
    assert caught.value.code == "elf-too-large"


def test_names_that_overlap_are_bounded() -> None:
    # 300,000 symbols, each beginning one byte further into 300 kB of strings of 30 kB: 4.5 GB of names.
    strings = b"\0" + (b"x" * 30000 + b"\0") * 10
    entries = b"".join(struct.pack("<IBBHQQ", 1 + n, 0x10, 0, 1, 0, 0) for n in range(300_000))
    began = time.process_time()
    with pytest.raises(ElfError) as caught:
        _ = SymbolTable(entries, strings).exports
    assert caught.value.code == "elf-too-large"
    assert time.process_time() - began < 5


def test_a_name_without_end_is_refused() -> None:
    strings = b"\0" + b"x" * 200_000 + b"\0"
    entries = struct.pack("<IBBHQQ", 1, 0x10, 0, 1, 0, 0)
    with pytest.raises(ElfError) as caught:
        _ = SymbolTable(entries, strings).exports
    assert caught.value.code == "elf-too-large"


def test_a_name_outside_the_strings_is_refused() -> None:
    entries = struct.pack("<IBBHQQ", 99, 0x10, 0, 1, 0, 0)
    for strings in (b"\0x\0", b"", b"\0x"):
        with pytest.raises(ElfError) as caught:
            _ = SymbolTable(entries, strings).exports
        assert caught.value.code == "elf-malformed"


def test_an_endless_chain_of_versions_ends(small_files: list[bytes]) -> None:
    # vn_next and vna_next that point at themselves cannot be written (zero ends a chain); a table of 0xffff
    # entries that walks over the same file is bounded by the file and by 32768 versions.
    data = bytearray(small_files[0])
    at = data.find(struct.pack("<HH", 1, 1))
    while at >= 0:
        survives(bytes(data[:at] + struct.pack("<HH", 1, 0xFFFF) + data[at + 4 :]))
        at = data.find(struct.pack("<HH", 1, 1), at + 1)


def test_sections_of_hostile_files(small_files: list[bytes], tmp_path: Path) -> None:
    data = bytearray(small_files[0])
    for field, width in ((0x28, 8), (0x3A, 2), (0x3C, 2), (0x3E, 2)):
        for value in NASTY:
            changed = bytearray(data)
            changed[field : field + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
            (tmp_path / "x.so").write_bytes(changed)
            try:
                read_sections(tmp_path / "x.so")
            except ElfError as error:
                assert not isinstance(error, ElfIncomplete)
