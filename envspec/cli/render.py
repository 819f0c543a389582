"""The results of commands as text: lists, tables and the last lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from envspec.report.findings import Report, counted
from envspec.report.text import count_findings, printable, render_finding

if TYPE_CHECKING:
    from envspec.check.match import MatchTable
    from envspec.cli.built import Built
    from envspec.cli.check_names import CheckNames
    from envspec.integrity.repair import Repaired
    from envspec.output.difference import Difference
    from envspec.output.history import GcResult, GenerationList
    from envspec.probe.reporting import ProbeReport


def render_report(report: Report) -> str:
    """Return the text of all findings, with a last line that counts them and a final newline."""
    parts = [render_finding(f) for f in report.findings]
    parts.append(f"{report.command}: {count_findings(report)}")
    return "\n".join(parts) + "\n"


def render_probes(report: ProbeReport) -> str:
    """Return one line for each probe, then the findings of those that fail."""
    lines = [
        f"{row.outcome.value:<9}  {row.name:<18} {row.seconds:6.1f} s  {'; '.join(row.did)}".rstrip()
        for row in report.probes
    ]
    lines += [render_finding(finding) for finding in report.findings]
    working = sum(row.outcome.value == "works" for row in report.probes)
    lines.append(f"probe: {working} of {len(report.probes)} work")
    return "\n".join(lines) + "\n"


def render_generations(found: GenerationList) -> str:
    """Return one line for each generation, the current one marked, with its users below."""
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
    """Return what was removed, and what was kept because a process uses it."""
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


def render_built(built: Built) -> Iterator[str]:
    """Yield whether there was anything to build, and the line that a user types next."""
    if not built.built:
        yield "nothing to do: the environment is up to date"
    yield _source_line(built.script)


def render_upgraded(built: Built) -> Iterator[str]:
    """Yield that nothing was changed, or the line that a user types next."""
    yield _source_line(built.script) if built.script else "nothing was changed"


def _source_line(script: str) -> str:
    """Return the line that sources a script, with the path as a user in this directory would type it."""
    path = Path(script)
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return f"source {shlex.quote(str(path))}"


def render_checks(found: CheckNames) -> Iterator[str]:
    """Yield one line for each check or probe."""
    width = max(len(row.name) for row in found.checks)
    for row in found.checks:
        remark = " (slow)" if row.slow else f" ({', '.join(row.packages)})" if row.packages else ""
        yield f"{row.name:<{width}}  {row.means}{remark}"


def render_match(table: MatchTable, torch: str | None) -> Iterator[str]:
    """Yield the table of releases; with `torch`, whether each release fits it."""
    yield f"{'version':<16} {'uploaded':<11} {'declares':<12} fits torch (by symbols)"
    for row in table.rows:
        fits = _fits_text(row.fits, table.known_torch)
        if row.problem and not row.fits:
            fits = f"unknown: {row.problem}"
        elif not row.imports_torch:
            fits = "any: imports nothing from torch"
        elif row.stable_abi:
            fits += " (stable ABI)"
        mark = ("yes  " if torch in row.fits else "no   ") if torch and row.imports_torch else ""
        yield f"{row.version:<16} {row.uploaded:<11} {row.declares or '-':<12} {mark}{fits}"


def _fits_text(fits: tuple[str, ...], known: tuple[str, ...]) -> str:
    """Return `2.11.0`, `2.11.0 to 2.12.1`, `2.14.0 and later` or `none of 2.8.0 to 2.15.0`."""
    if not fits:
        return f"none of {known[0]} to {known[-1]}"
    first, last = known.index(fits[0]), known.index(fits[-1])
    if last - first + 1 != len(fits):
        return ", ".join(fits)
    if len(fits) == 1 and last != len(known) - 1:
        return fits[0]
    return f"{fits[0]} and later" if last == len(known) - 1 else f"{fits[0]} to {fits[-1]}"


def count_repaired(done: Repaired) -> str:
    """Return what a repair put back, in one line."""
    parts = []
    if done.files:
        packages = f" of {', '.join(done.packages)}" if len(done.packages) in (1, 2, 3) else ""
        packages = packages or (f" of {len(done.packages)} packages" if done.packages else "")
        parts.append(f"{counted(done.files, 'file')}{packages} put back")
    if done.removed:
        parts.append(f"{', '.join(done.removed)} removed")
    if done.toolkit:
        parts.append(f"{counted(done.toolkit, 'file')} of CUDA_HOME put back")
    if done.script:
        parts.append("the environment script written")
    if done.places:
        parts.append(f"{', '.join(done.places)} put right")
    return ", ".join(parts) or "nothing to repair"


def render_difference(found: Difference) -> Iterator[str]:
    """Yield one line for each change, or that there is none."""
    yield f"{found.a} -> {found.b}"
    lines = [_change(*change) for change in (*found.packages, *found.settings)]
    lines += [f"toolkit: {_change(*change).strip()}" for change in found.toolkit if change[0] == "CUDA_HOME"]
    lines += [f"gone: {text}" for text in found.findings_gone]
    lines += [f"new:  {text}" for text in found.findings_new]
    if found.files:
        lines.append(f"{counted(found.files, 'file')} {'differs' if found.files == 1 else 'differ'}")
    if f"{found.size_a / 1e6:.1f}" != f"{found.size_b / 1e6:.1f}":
        lines.append(f"size: {found.size_a / 1e6:.1f} MB -> {found.size_b / 1e6:.1f} MB")
    if not lines:
        lines.append("the same environment" if found.same_digest else "no differences")
    yield from lines


def _change(name: str, old: str, new: str) -> str:
    if not old:
        return f"  + {name} {new}"
    return f"  - {name} {old}" if not new else f"  ~ {name} {old} -> {new}"
