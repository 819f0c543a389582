"""Reading a library of which only the first bytes are at hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.elf import ElfIncomplete, read, read_prefix
from tests.unit.elf.conftest import SOURCE

Build = Callable[..., Path]

# Enough text that .dynamic lies far behind the symbols, and many exports.
BULK = SOURCE + "".join(f"int exported_{n}(int x) {{ return wanted_strong(x + {n}); }}\n" for n in range(400))


@pytest.mark.parametrize("flags", [("-Wl,--hash-style=gnu",), ("-Wl,--hash-style=both",)])
def test_symbols_are_found_without_dynamic(flags: tuple[str, ...], compile_library: Build) -> None:
    path = compile_library(BULK, "-lm", "-Wl,-soname,libdemo.so.1", *flags)
    whole = read(path)
    data = path.read_bytes()
    elf = read_prefix(data[:24576], len(data))
    assert elf.partial
    assert elf.symbols.exports == whole.symbols.exports
    assert elf.symbols.imports == whole.symbols.imports
    assert elf.symbols.weak_imports == whole.symbols.weak_imports
    assert {b"libm.so.6", b"libdemo.so.1"} <= elf.unclaimed
    with pytest.raises(ElfIncomplete) as caught:
        _ = elf.needed
    assert caught.value.need > 24576


def test_every_length_says_the_truth_or_incomplete(compile_library: Build) -> None:
    path = compile_library(SOURCE, "-lm")
    whole = read(path)
    data = path.read_bytes()
    outcomes = []
    for length in range(0, len(data) + 1, 8):
        try:
            elf = read_prefix(data[:length], len(data))
        except ElfIncomplete as incomplete:
            assert length < incomplete.need <= len(data)
            outcomes.append("incomplete")
            continue
        assert elf.symbols.exports == whole.symbols.exports
        assert elf.symbols.imports == whole.symbols.imports
        outcomes.append("partial" if elf.partial else "whole")
    assert outcomes[0] == "incomplete"
    assert outcomes[-1] == "whole"
    # More bytes never make it worse.
    assert outcomes == sorted(outcomes, key=["incomplete", "partial", "whole"].index)


def test_a_file_without_gnu_hash_is_incomplete_not_guessed(compile_library: Build) -> None:
    path = compile_library(BULK, "-lm", "-Wl,--hash-style=sysv")
    data = path.read_bytes()
    with pytest.raises(ElfIncomplete):
        read_prefix(data[:24576], len(data))


def test_a_table_that_disagrees_with_its_hashes_is_not_believed(compile_library: Build) -> None:
    path = compile_library(BULK, "-lm", "-Wl,--hash-style=gnu")
    data = bytearray(path.read_bytes())
    at = data.find(b"exported_")
    for place in range(at, at + 4000):  # one letter in every exported name
        if data[place : place + 9] == b"exported_":
            data[place] = ord("X")
    with pytest.raises(ElfIncomplete):
        read_prefix(bytes(data[:24576]), len(data))
