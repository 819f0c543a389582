"""The lists that commands print, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envspec.report.findings import Report
from envspec.report.text import count_findings, printable, render_finding

if TYPE_CHECKING:
    from envspec.output.history import GcResult, GenerationList
    from envspec.probe.reporting import ProbeReport


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
