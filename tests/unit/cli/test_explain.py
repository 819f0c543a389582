"""`envspec explain` and the table of codes: complete, current, and kind to a misspelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from envspec.check.engine import all_rules
from envspec.cli.explain import ErrorExit, ErrorRow, all_codes, run_explain
from envspec.cli.main import cli
from envspec.data import load_table
from envspec.report import errors
from envspec.report.errors import EnvspecError, UsageError
from envspec.report.explanations import explained_codes, explanation
from envspec.report.findings import Finding, Severity
from envspec.report.text import render_error, render_finding
from tests.support.code_use import finding_codes, raised_codes

ROWS = load_table("codes", ErrorRow)
RULES = {rule.code for rule in all_rules()}


def test_every_code_of_the_source_is_in_the_table_and_none_is_left_over() -> None:
    assert {row.code for row in ROWS} == raised_codes() - RULES
    assert [row.code for row in ROWS] == sorted({row.code for row in ROWS})


def test_every_finding_has_a_known_code() -> None:
    assert finding_codes() <= {code.code for code in all_codes() if code.rule}


def test_every_rule_is_explained_and_every_explanation_has_a_code() -> None:
    codes = {code.code: code for code in all_codes()}
    assert {code for code, row in codes.items() if row.rule} <= explained_codes()
    assert explained_codes() <= set(codes)


def test_an_explanation_is_a_short_page() -> None:
    for code in sorted(explained_codes()):
        text = explanation(code)
        assert text is not None, code
        lines = text.splitlines()
        assert 3 <= len(lines) <= 30, code
        assert max(map(len, lines)) <= 132, code
        assert text.isascii() and text.endswith("\n"), code


def test_exits_are_the_exit_codes() -> None:
    assert {e.name for e in ErrorExit} < {e.name for e in errors.Exit}


def test_a_code_is_explained() -> None:
    text = run_explain("torch-abi")
    assert text.startswith("torch-abi: Every compiled extension finds in the set's torch all symbols")
    assert "undefined symbol" in text


@pytest.mark.parametrize("spelling", ["error[torch-abi]:", "[torch-abi]", " Torch-ABI "])
def test_a_code_may_be_copied_from_a_message(spelling: str) -> None:
    assert run_explain(spelling) == run_explain("torch-abi")


def test_a_code_without_a_page_is_not_an_unknown_code() -> None:
    assert run_explain("disk-failing") == (
        "disk-failing: The operating system reported an input/output error.\n\n"
        "There is no longer explanation of this code yet; the message says all there is.\n"
    )


@pytest.mark.parametrize(
    ("wanted", "fix"),
    [
        ("torch-abo", "did you mean torch-abi?"),
        ("../explanations/torch-abi", "envspec explain lists all codes"),
        ("x", "envspec explain lists all codes"),
        ("", "envspec explain lists all codes"),
    ],
)
def test_an_unknown_code_is_refused_with_the_nearest_one(wanted: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        run_explain(wanted)
    assert (caught.value.code, caught.value.fix) == ("unknown-code", fix)


def test_a_page_is_never_looked_up_by_path(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("# x\n\nsecret\n")
    for code in (str(tmp_path / "x"), "../explanations/torch-abi", "torch-abi/../torch-abi", ""):
        assert explanation(code) is None


def test_without_a_code_all_are_listed() -> None:
    result = CliRunner().invoke(cli, ["explain"])
    assert result.exit_code == 0
    listed = {line.split()[0] for line in result.output.splitlines() if line.startswith("  ")}
    assert listed == {code.code for code in all_codes()}


def test_errors_and_findings_with_a_page_name_it_last() -> None:
    error = EnvspecError("disk-full", "the disk is full", fix="free space")
    assert render_error(error) == (
        "error[disk-full]: the disk is full\n  fix: free space\n  more: envspec explain disk-full\n"
    )
    finding = Finding(code="yanked", severity=Severity.WARNING, subject="x", message="x 1 was yanked")
    assert render_finding(finding) == "warning[yanked]: x 1 was yanked\n  more: envspec explain yanked"


def test_an_error_without_a_page_names_none() -> None:
    assert render_error(EnvspecError("os-error", "no such device")) == "error[os-error]: no such device\n"
