"""The JSON form of an error: what a command prints with `--json` when it has no result."""

from __future__ import annotations

import msgspec

from envspec.report.errors import EnvspecError
from envspec.report.findings import FailedReport, Finding


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Says what went wrong, in the same words as the text form.

    `code` is stable and names the kind (`envspec explain CODE`); `what` is one sentence; `where` is a file, a dotted key or
    an option; `why` may hold several lines; `fix` tells what to do next; `log` is a file that tells more of what was done,
    if there is one; `exit` is the exit code of the command.
    """

    code: str
    what: str
    where: str = ""
    why: str = ""
    fix: str = ""
    log: str = ""
    exit: int


class ErrorReport(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the end of a command that has no result. `version` is the version of the JSON form; no other form has `error`."""

    version: int = 1
    command: str
    error: ErrorDetail
    findings: tuple[Finding, ...] = ()
    """The errors, warnings and notes of a check that stopped the command."""


def error_report(command: str, error: EnvspecError) -> ErrorReport:
    """Return the JSON form of an error that ended `command`, which is empty where no command was recognised."""
    return ErrorReport(
        command=command,
        error=ErrorDetail(
            code=error.code,
            what=error.what,
            where=error.where,
            why=error.why,
            fix=error.fix,
            log=error.log,
            exit=int(error.exit),
        ),
        findings=error.report.findings if isinstance(error, FailedReport) else (),
    )
