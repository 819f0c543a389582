"""What reaches a terminal moves no cursor, whoever wrote it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envspec.cli.show import say, show_report
from envspec.report.findings import note, report, to_json

ODD = "a\x1b]0;PWN\x07b\x9b2Jc\u202ed\U000e0001"


def test_a_report_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    found = report("check", ODD, [note("file-conflict", ODD, ODD, evidence=[ODD], fix=ODD)])
    show_report(found, as_json=False)
    show_report(found, as_json=True)
    printed = capsys.readouterr().out
    assert all(line.isprintable() for line in printed.split("\n"))
    assert json.loads(to_json(found))["findings"][0]["message"] == ODD


@given(st.text(max_size=40))
def test_any_line(text: str) -> None:
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as stream:
        say(text)
    assert all(line.isprintable() for line in stream.getvalue().split("\n"))


@given(st.text(max_size=40))
def test_any_text_survives_json(text: str) -> None:
    found = report("check", text, [])
    assert json.loads(to_json(found))["subject"] == text
