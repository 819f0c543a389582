"""Hostile and damaged input: nothing in a log can crash the reader, take it long, or reach the terminal raw."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envspec.diagnose import diagnose, render_text, to_json
from tests.support import logs

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
FRAGMENTS = st.sampled_from([line for path in CASES for line in path.read_bytes().split(b"\n")])
BROKEN_TEXT = st.lists(
    st.one_of(FRAGMENTS, st.binary(max_size=200), st.text(max_size=80).map(str.encode)), max_size=40
)
QUIETLY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _check(log: bytes) -> None:
    answer = diagnose(io.BytesIO(log))
    value = json.loads(to_json(answer))
    assert list(value) == ["version", "verdict", "cause", "misleading", "others"]
    assert (value["cause"] is None) == (value["verdict"] == "no-failure")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", render_text(answer))
    count = len(log.split(b"\n"))
    for row in [value["cause"], *value["misleading"], *value["others"]]:
        if row is not None:
            assert 1 <= row["line"] <= count


@QUIETLY
@given(st.binary(max_size=4000))
def test_any_bytes(log: bytes) -> None:
    _check(log)


@QUIETLY
@given(BROKEN_TEXT, st.sampled_from([b"\n", b"\r\n", b"\r", b"", b"\\n"]))
def test_pieces_of_real_logs_in_any_order(pieces: list[bytes], separator: bytes) -> None:
    _check(separator.join(pieces))


@QUIETLY
@given(st.sampled_from(CASES), st.data())
def test_a_cut_log(path: Path, data: st.DataObject) -> None:
    log = path.read_bytes()
    start = data.draw(st.integers(0, len(log)))
    _check(log[start : data.draw(st.integers(start, len(log)))])


@pytest.mark.parametrize(
    "line",
    [
        b"A" * 3_000_000,
        b"error: " * 400_000,
        b"/a:1:1: " * 300_000,
        b"{" * 100_000,
        b'{"log":' * 50_000,
        b"[" * 200_000 + b"]",
        b"\x1b[" * 200_000,
        b"\r" * 1_000_000,
        b"(x pid=1) " * 200_000,
        b"Traceback (most recent call last):\n" * 50_000,
        b"\n" * 2_000_000,
        b"\\n" * 500_000,
    ],
    ids=lambda line: repr(line[:12]),
)
def test_made_to_hurt(line: bytes) -> None:
    start = time.process_time()
    _check(line)
    assert time.process_time() - start < 10


def test_an_error_inside_an_endless_line_is_found() -> None:
    line = b"x" * 900_000 + b" ImportError: libnvrtc.so.13: cannot open shared object file " + b"y" * 900_000
    answer = diagnose(io.BytesIO(b"start\n" + line + b"\nend\n"))
    assert answer.cause is not None
    assert answer.cause.line == 2
    assert "libnvrtc.so.13" in answer.cause.text
    assert len(answer.cause.text) < 20_000


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    log = "\x1b]0;owned\x07\x1b[2JImportError: \x1b[31mlibx.so.1\x1b[0m: cannot open shared object file\x9b31m\u202e\n"
    answer = logs.of(log)
    text = render_text(answer)
    assert answer.cause is not None
    assert answer.cause.text == log.rstrip("\n")
    assert "libx.so.1: cannot open shared object file" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "owned" not in text
