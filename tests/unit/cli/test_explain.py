"""`envspec explain` and the table of codes: complete, current, and kind to a misspelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from envspec.check.rules import RULES
from envspec.cli.codes import ErrorExit, ErrorRow, FindingRow, all_codes
from envspec.cli.explain import every_code, explain
from envspec.cli.main import cli
from envspec.data import load_table
from envspec.diagnose.knowledge import knowledge
from envspec.report import errors
from envspec.report.errors import EnvspecError, UsageError
from envspec.report.explanations import explained_codes, explanation
from envspec.report.findings import Finding, Severity
from envspec.report.text import render_error, render_finding
from tests.support.code_use import finding_codes, raised_codes, texts

ROWS = load_table("codes", ErrorRow)
RULE_CODES = {rule.code for rule in RULES.all()}


def test_every_code_of_the_source_is_in_the_table_and_none_is_left_over() -> None:
    assert {row.code for row in ROWS} == raised_codes() - RULE_CODES
    assert [row.code for row in ROWS] == sorted({row.code for row in ROWS})


def test_every_finding_has_a_known_code_and_no_row_is_left_over() -> None:
    assert finding_codes() <= {code.code for code in all_codes() if code.command}
    assert {row.code for row in load_table("findings", FindingRow)} <= texts()


def test_every_code_has_a_page_and_every_page_has_a_code() -> None:
    assert explained_codes() == {code.code for code in all_codes()}
    assert raised_codes() | finding_codes() <= explained_codes()


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


def called(*words: str) -> str:
    """What `envspec explain` prints."""
    result = CliRunner().invoke(cli, ["explain", *words])
    assert result.exit_code == 0
    return result.output


def test_a_code_is_explained() -> None:
    text = called("torch-abi")
    assert text.startswith("torch-abi: Every compiled extension finds in the set's torch all symbols")
    assert "undefined symbol" in text


@pytest.mark.parametrize("spelling", ["error[torch-abi]:", "[torch-abi]", " Torch-ABI "])
def test_a_code_may_be_copied_from_a_message(spelling: str) -> None:
    assert explain(spelling) == explain("torch-abi")


def test_a_cause_of_diagnose_is_explained() -> None:
    assert called("cause[ninja-missing]") == (
        "ninja-missing: The build tool ninja was not found.\n\n"
        "The build tool ninja was not found. Often it is installed in the venv, but the server was started by\n"
        "the interpreter's path and the venv's bin is not on PATH.\n\n"
        "A line of the log that shows it holds one of these, for example:\n"
        "  'ninja'\n"
        "  Ninja is required\n"
        "  ninja: not found\n"
        "  ninja: command not found\n\n"
        "fix: Install ninja in the environment, and put its bin directory first on PATH of the server's\n"
        "     process: source out/sglang_env.sh before the start.\n\n"
        "seen in: LMCache/LMCache 1925 (2026-11)\n"
    )


def test_every_cause_is_explained_without_a_place_that_was_not_filled() -> None:
    tables = knowledge()
    for name in {f.id for f in tables.families} | {d.family for d in tables.defaults.values()}:
        (cause,) = (row for row in explain(name) if row.group == "cause")
        assert cause.page.count("fix: ") == 1
        assert "{" not in cause.means + cause.page.partition("It shows")[0].partition("\nA line")[0]
        assert max(map(len, cause.page.splitlines())) <= 220


def test_a_name_that_is_a_code_and_a_cause_is_explained_as_both() -> None:
    assert [row.group for row in explain("disk-full")] == ["error", "cause"]
    text = called("disk-full")
    assert text.index("disk-full: The disk or the quota") < text.index("\n\ndisk-full: A file system is full")


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
        explain(wanted)
    assert (caught.value.code, caught.value.fix) == ("unknown-code", fix)


def test_a_page_is_never_looked_up_by_path(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("# x\n\nsecret\n")
    for code in (str(tmp_path / "x"), "../explanations/torch-abi", "torch-abi/../torch-abi", ""):
        assert explanation(code) is None


def test_without_a_code_all_are_listed() -> None:
    lines = called().splitlines()
    assert lines[0] == "Findings of envspec check:"
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == [row.code for row in every_code()]
    tables = knowledge()
    causes = {f.id for f in tables.families} | {d.family for d in tables.defaults.values()}
    assert set(listed) == {code.code for code in all_codes()} | causes
    assert lines[-1] == "envspec explain CODE tells more."


def test_errors_and_findings_with_a_page_name_it_last() -> None:
    error = EnvspecError("disk-full", "the disk is full", fix="free space")
    assert render_error(error) == (
        "error[disk-full]: the disk is full\n  fix: free space\n  more: envspec explain disk-full\n"
    )
    finding = Finding(code="yanked", severity=Severity.WARNING, subject="x", message="x 1 was yanked")
    assert render_finding(finding) == "warning[yanked]: x 1 was yanked\n  more: envspec explain yanked"


def test_an_error_without_a_page_names_none() -> None:
    assert render_error(EnvspecError("no-page", "no such device")) == "error[no-page]: no such device\n"
