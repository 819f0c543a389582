"""How errors and findings look. One place, so that every command speaks the same way.

error[profile-unknown-key]: unknown key gpu.archh
  profiles/rtx-pro-6000.toml
  fix: did you mean 'arch'?
  more: envspec explain profile-unknown-key
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from envspec.report.errors import EnvspecError
from envspec.report.explanations import explained_codes
from envspec.report.findings import Finding, Report, Severity

if TYPE_CHECKING:
    from envspec.output.history import GcResult, GenerationList
    from envspec.probe.reporting import ProbeReport


def render_error(error: EnvspecError) -> str:
    """The text of an error, without colour, with a final newline."""
    return "\n".join(map(printable, _error_lines(error))) + "\n"


def printable(line: str) -> str:
    """One line with nothing that could steer a terminal: names and texts in it come from files of others."""
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
    yield from _more(error.code)


def _more(code: str) -> Iterator[str]:
    """Where to read on, for a code that has a page."""
    if code in explained_codes():
        yield f"  more: envspec explain {code}"


def render_finding(finding: Finding) -> str:
    """The text of one finding, without colour, without a final newline."""
    lines = [f"{finding.severity.value}[{finding.code}]: {finding.message}"]
    lines += [f"  {line}" for line in finding.evidence]
    lines += [f"  {link}" for link in finding.chain]
    if finding.fix:
        lines.append(f"  fix: {finding.fix}")
    lines += _more(finding.code)
    return "\n".join(map(printable, lines))


def render_report(report: Report) -> str:
    """All findings and a last line that counts them, with a final newline."""
    parts = [render_finding(f) for f in report.findings]
    parts.append(summary(report))
    return "\n".join(parts) + "\n"


def render_probes(report: ProbeReport) -> str:
    """One line a probe, then the findings of those that fail."""
    lines = [
        f"{row.outcome.value:<9}  {row.name:<18} {row.seconds:6.1f} s  {'; '.join(row.did)}".rstrip()
        for row in report.probes
    ]
    lines += [render_finding(finding) for finding in report.findings]
    working = sum(row.outcome.value == "works" for row in report.probes)
    lines.append(f"probe: {working} of {len(report.probes)} work")
    return "\n".join(lines) + "\n"


def summary(report: Report) -> str:
    """`check: 2 errors, 1 warning`, or that nothing was found."""
    return f"{report.command}: {count_findings(report)}"


def count_findings(report: Report) -> str:
    """`2 errors, 1 warning`, or that nothing was found."""
    counts = []
    for severity in Severity:
        number = sum(f.severity is severity for f in report.findings)
        if number:
            plural = "" if number == 1 or severity is Severity.UNKNOWN else "s"
            counts.append(f"{number} {severity.value}{plural}")
    return ", ".join(counts) if counts else "nothing found"


def render_generations(found: GenerationList) -> str:
    """One line a generation, the current one marked, its users below."""
    lines = []
    for row in found.generations:
        mark = "*" if row.current else " "
        if row.problem:
            lines.append(f"{mark} {row.number:<4} {row.problem}")
        else:
            lines.append(
                f"{mark} {row.number:<4} {row.built}  {row.profile}  {row.packages} packages  "
                f"{row.digest[:19]}  cuda {row.toolchain}"
            )
        lines += [f"       used by {user}" for user in row.users]
    return "".join(printable(line) + "\n" for line in lines) or "no generation\n"


def render_gc(result: GcResult) -> str:
    """What was removed, and what was kept for whom."""
    removed = ", ".join(map(str, result.removed)) or "nothing"
    lines = [f"removed generations: {removed}"]
    if result.toolchains:
        lines.append(f"removed toolchains: {', '.join(result.toolchains)}")
    for row in result.in_use:
        lines.append(f"kept generation {row.number}, which is in use:")
        lines += [f"  {user}" for user in row.users]
    if result.unseen and result.removed:
        plural = "" if result.unseen == 1 else "es"
        lines.append(
            f"what {result.unseen} process{plural} use cannot be seen by this user, and was not asked"
        )
    return "".join(printable(line) + "\n" for line in lines)
