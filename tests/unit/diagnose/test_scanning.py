"""Long logs: what is found, and where, does not depend on how much surrounds it."""

from __future__ import annotations

import io
import tracemalloc
from typing import BinaryIO

import pytest

from envspec.diagnose import diagnose, scanning
from tests.support import logs

FAILURE = (
    "FAILED: batch.o\n/x/utils.cuh:21:10: fatal error: cuda_fp8.h: No such file or directory\n"
    "ninja: build stopped: subcommand failed.\n"
)
LOCALIZED = (
    "FAILED: batch.o\n/x/utils.cuh:21:10: schwerwiegender Fehler: cuda_fp8.h: Datei oder Verzeichnis nicht gefunden\n"
    "ninja: build stopped: subcommand failed.\n"
)


class Trickle(io.RawIOBase):
    """A pipe that gives a few bytes at a time and cannot seek."""

    def __init__(self, data: bytes, step: int) -> None:
        self.rest, self.step = data, step

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece, self.rest = self.rest[: self.step], self.rest[self.step :]
        return piece


@pytest.mark.parametrize("failure", [FAILURE, LOCALIZED])
@pytest.mark.parametrize("before", [0, 10, 20_000, 90_000])
@pytest.mark.parametrize("after", [0, 10, 90_000])
def test_found_at_its_line(failure: str, before: int, after: int) -> None:
    log = logs.serving(before) + failure + logs.serving(after)
    answer = logs.of(log)
    assert answer.cause is not None
    assert answer.cause.line == before + 2
    assert answer.cause.text == failure.split("\n")[1]
    assert answer.cause.family == "missing-cuda-header"


@pytest.mark.parametrize("step", [1, 7, 4096, 100_000])
def test_small_reads(step: int) -> None:
    stream: BinaryIO = Trickle(("a\n" * 50 + FAILURE).encode(), step)  # type: ignore[assignment]
    answer = diagnose(stream)
    assert answer.cause is not None
    assert answer.cause.line == 52


def test_line_numbers_count_newlines_only() -> None:
    log = "progress 1\rprogress 2\rprogress 3\n\x0b\x0c\n\u2028\n" + FAILURE
    answer = logs.of(log)
    assert answer.cause is not None
    assert answer.cause.line == 5


def test_without_a_final_newline() -> None:
    assert logs.of(FAILURE.split("\n")[1]).cause is not None


def test_every_line_is_read_in_a_short_log() -> None:
    log = "".join(f"line {i}\n" for i in range(5000)).encode()
    assert [number for number, _ in scanning.lines_of(io.BytesIO(log))] == list(range(1, 5001))


def test_memory_does_not_grow_with_the_log() -> None:
    block = logs.serving(20_000).encode()

    class Endless(io.RawIOBase):
        left = 60

        def read(self, size: int = -1) -> bytes:
            self.left -= 1
            return block if self.left >= 0 else b""

    tracemalloc.start()
    diagnose(Endless())  # type: ignore[arg-type]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40_000_000
