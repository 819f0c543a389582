"""Every case under `cases/`: failures as people have reported them, alone and under the misleading tail."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.support import logs

CASES = Path(__file__).parent / "cases"
with (CASES / "cases.tsv").open(encoding="utf-8", newline="") as table:
    ROWS = list(csv.DictReader(table, delimiter="\t"))
FOUND = [row for row in ROWS if row["verdict"] == "cause-found"]


def _words(text: str) -> str:
    return " ".join(text.split())


def _log(row: dict[str, str]) -> str:
    return (CASES / row["file"]).read_bytes().decode()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_case(row: dict[str, str]) -> None:
    answer = logs.of(_log(row))
    assert answer.verdict == row["verdict"]
    assert (answer.cause.family if answer.cause else "") == row["family"]
    if answer.verdict == "cause-found":
        assert answer.cause is not None
        assert _words(row["evidence"]) in _words(answer.cause.text)
        assert answer.cause.text == _log(row).split("\n")[answer.cause.line - 1]
        assert answer.cause.meaning
        assert answer.cause.fix


@pytest.mark.parametrize("row", FOUND, ids=lambda row: row["file"])
def test_case_in_a_long_log_under_the_memory_advice(row: dict[str, str]) -> None:
    answer = logs.of(logs.buried(_log(row)))
    assert answer.verdict == "cause-found"
    assert answer.cause is not None
    assert _words(row["evidence"]) in _words(answer.cause.text)
    advice = [m for m in answer.misleading if "--mem-fraction-static" in m.text]
    assert bool(advice) == (row["family"] not in ("gpu-out-of-memory", "kv-cache-too-small"))


def test_every_case_file_has_a_row() -> None:
    assert {p.name for p in CASES.glob("*.txt")} == {row["file"] for row in ROWS}
