"""The one error boundary: what each kind of end prints where, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable

import click
import pytest

from envspec.cli import profiles
from envspec.cli.main import run
from envspec.report.errors import StageError, Terminated
from envspec.report.findings import FailedReport, error, report, warning

FAILED = FailedReport(
    "check-failed",
    "the locked set cannot work",
    report(
        "check", "p.toml", [error("torch-abi", "x", "x does not fit"), warning("yanked", "y", "y was yanked")]
    ),
    where="p.toml",
    fix="change x",
)
TEXTS: list[tuple[BaseException, int, str]] = [
    (
        FAILED,
        1,
        "error[torch-abi]: x does not fit\n  more: envspec explain torch-abi\n"
        "error[check-failed]: the locked set cannot work: torch-abi\n  p.toml\n  fix: change x\n"
        "  more: envspec explain check-failed\n",
    ),
    (StageError("no-page", "it failed"), 1, "error[no-page]: it failed\n"),
    (OSError(28, "No space left on device", "/x"), 3, "error[disk-full]: the disk is full\n  /x\n"
     "  fix: free space, or name another --out\n  more: envspec explain disk-full\n"),
    (KeyboardInterrupt(), 130, "interrupted; the environment that was there before is untouched\n"),
    (click.Abort(), 130, "interrupted; the environment that was there before is untouched\n"),
    (Terminated(15), 143, ""),
    (click.exceptions.Exit(1), 1, ""),
]  # fmt: skip


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """`envspec profiles` that ends with an exception of the test's choice."""

    def set_end(end: BaseException) -> None:
        def raise_it() -> None:
            raise end

        monkeypatch.setattr(profiles, "shipped_profiles", raise_it)

    return set_end


@pytest.mark.parametrize(("end", "code", "text"), TEXTS, ids=lambda value: type(value).__name__)
def test_text_and_exit_code(
    ends_with: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
    end: BaseException,
    code: int,
    text: str,
) -> None:
    ends_with(end)
    assert run(["profiles"]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.lstrip("\n")) == ("", text)


@pytest.mark.parametrize(("end", "code", "text"), TEXTS[:-1], ids=lambda value: type(value).__name__)
def test_json_and_exit_code(
    ends_with: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
    end: BaseException,
    code: int,
    text: str,
) -> None:
    ends_with(end)
    assert run(["profiles", "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err.strip() == ""
    found = json.loads(captured.out)
    assert (found["command"], found["error"]["exit"]) == ("profiles", code)


def test_a_failed_report_comes_with_all_its_findings(
    ends_with: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    ends_with(FAILED)
    run(["profiles", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [(f["severity"], f["code"]) for f in found["findings"]] == [
        ("error", "torch-abi"),
        ("warning", "yanked"),
    ]


def test_a_fault_of_envspec_has_its_own_exit_code(
    ends_with: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    ends_with(KeyError("x"))
    assert run(["profiles"]) == 4
    assert "Traceback" in (err := capsys.readouterr().err)
    assert "error[internal-error]: envspec failed with KeyError, which is a fault of its own\n  'x'\n" in err
