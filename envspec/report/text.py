"""How an error and a finding read. One place, so that every command speaks the same way.

error[profile-unknown-key]: unknown key gpu.archh
  profiles/rtx-pro-6000.toml
  fix: did you mean 'arch'?
  more: envspec explain profile-unknown-key
"""

from __future__ import annotations

from collections.abc import Iterator

from envspec.report.errors import EnvspecError
from envspec.report.explanations import explained_codes
from envspec.report.findings import FailedReport, Finding, Report, Severity


def render_error(error: EnvspecError) -> str:
    """Return the text of an error, without colour, with a final newline; before it that of the findings it is made of."""
    findings = error.report.errors if isinstance(error, FailedReport) else ()
    return "\n".join([*map(render_finding, findings), *map(printable, _error_lines(error))]) + "\n"


def printable(line: str) -> str:
    """Return the line with nothing in it that could steer a terminal: names and texts come from files of others."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def _error_lines(error: EnvspecError) -> Iterator[str]:
    yield f"error[{error.code}]: {error.what}"
    if error.where:
        yield f"  {error.where}"
    for line in error.why.splitlines():
        yield f"  | {line}" if error.why.count("\n") else f"  {line}"
    if error.fix:
        first, *rest = error.fix.splitlines()
        yield f"  fix: {first}"
        for line in rest:
            yield f"       {line}"
    if error.log:
        yield f"  log: {error.log}"
    yield from _more(error.code)


def _more(code: str) -> Iterator[str]:
    """Yield where to read on, for a code that has a page."""
    if code in explained_codes():
        yield f"  more: envspec explain {code}"


def render_finding(finding: Finding) -> str:
    """Return the text of one finding, without colour, without a final newline."""
    lines = [f"{finding.severity.value}[{finding.code}]: {finding.message}"]
    lines += [f"  {line}" for line in finding.evidence]
    lines += [f"  {path}" for path in finding.dependency_paths]
    if finding.fix:
        lines.append(f"  fix: {finding.fix}")
    lines += _more(finding.code)
    return "\n".join(map(printable, lines))


def note_text(what: str | Finding) -> str:
    """Return a note of a command's progress as text: it is a line, or a finding."""
    return render_finding(what) if isinstance(what, Finding) else what


def count_findings(report: Report) -> str:
    """Return `2 errors, 1 warning`, or that nothing was found."""
    counts = []
    for severity in Severity:
        number = sum(f.severity is severity for f in report.findings)
        if number:
            plural = "" if number == 1 or severity is Severity.UNKNOWN else "s"
            counts.append(f"{number} {severity.value}{plural}")
    return ", ".join(counts) if counts else "nothing found"
