"""The one result type of every check: check, audit, doctor, probe, verify and diagnose.

A finding is data; it is rendered in `render.py` and written as JSON by msgspec, so that the two faces of a
report cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import partial

import msgspec

from envspec.report.errors import StageError
from envspec.report.remedies import Remedy, words_of


class Severity(str, Enum):
    """Says how bad it is. `UNKNOWN` is not harmless: the check lacked the data to answer."""

    ERROR = "error"
    WARNING = "warning"
    UNKNOWN = "unknown"
    NOTE = "note"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one answer of one check.

    `subject` is the package, file or key it is about; `evidence` are facts that the user can check (file names, versions,
    symbols); `dependency_paths` lead from the subject, by what requires it, to the profile. `remedies` remove the cause,
    all of them together; `fix` says the same in words, or names what only a person can decide.
    """

    code: str
    severity: Severity
    subject: str
    message: str
    evidence: tuple[str, ...] = ()
    dependency_paths: tuple[str, ...] = ()
    fix: str = ""
    remedies: tuple[Remedy, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the findings of one run of one command, worst first. `version` is the version of the JSON form."""

    version: int = 1
    command: str
    subject: str
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Return the findings that make the command fail."""
        return tuple(f for f in self.findings if f.severity is Severity.ERROR)

    @property
    def error_codes(self) -> tuple[str, ...]:
        """Return the codes of the errors, each once, by name."""
        return tuple(sorted({f.code for f in self.errors}))

    def __bool__(self) -> bool:
        """True if nothing is wrong that is known to be wrong."""
        return not self.errors


class FailedReport(StageError):
    """A report with errors ends a command. Whoever shows the error shows `report` before it, as text or as JSON."""

    def __init__(self, code: str, what: str, report: Report, *, where: str, fix: str) -> None:
        super().__init__(code, f"{what}: {', '.join(report.error_codes)}", where=where, fix=fix)
        self.report = report


def allow(findings: Iterable[Finding], codes: frozenset[str]) -> Iterator[Finding]:
    """Yield the findings; errors of these codes become notes, whose message says so."""
    for finding in findings:
        if finding.code in codes and finding.severity is Severity.ERROR:
            yield msgspec.structs.replace(
                finding, severity=Severity.NOTE, message=f"allowed: {finding.message}"
            )
        else:
            yield finding


_ORDER = {severity: rank for rank, severity in enumerate(Severity)}


def report(command: str, subject: str, findings: Iterable[Finding]) -> Report:
    """Make a report with its findings in the one stable order: severity, code, subject, message."""
    ordered = sorted(findings, key=lambda f: (_ORDER[f.severity], f.code, f.subject, f.message))
    return Report(command=command, subject=subject, findings=tuple(ordered))


def to_json(value: msgspec.Struct) -> str:
    """Return the versioned JSON form of a report, with a final newline."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    # JSON goes to terminals too: what msgspec does not escape, such as U+009B, may move a cursor there.
    return "".join(map(_escaped, text)) + "\n" if not text.replace("\n", "").isprintable() else text + "\n"


def _escaped(letter: str) -> str:
    if letter.isprintable() or letter == "\n":
        return letter
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _finding(
    severity: Severity,
    code: str,
    subject: str,
    message: str,
    *,
    evidence: Iterable[str] = (),
    dependency_paths: Iterable[str] = (),
    fix: str = "",
    remedies: Iterable[Remedy] = (),
) -> Finding:
    remedies = tuple(remedies)
    return Finding(
        code=code,
        severity=severity,
        subject=subject,
        message=message,
        evidence=tuple(evidence),
        dependency_paths=tuple(dependency_paths),
        fix=fix or words_of(remedies),
        remedies=remedies,
    )


error = partial(_finding, Severity.ERROR)
"""Makes a finding that stops a build. Without `fix` the remedies are put into words."""

warning = partial(_finding, Severity.WARNING)
"""Makes a finding that will matter on some machine or some day."""

note = partial(_finding, Severity.NOTE)
"""Makes a finding that is worth knowing, about what is as it should be."""

unknown = partial(_finding, Severity.UNKNOWN)
"""Makes the finding of a rule that could not decide about this subject."""


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: `1 path`, `2 paths`."""
    return f"{number} {thing}" + ("" if number == 1 else "s")
