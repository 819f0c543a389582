"""What came of the probes: a row each, and for what failed a finding with its true cause."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from enum import Enum

import msgspec

from envspec.diagnose import diagnose
from envspec.diagnose.environment import EnvironmentFacts
from envspec.diagnose.rendering import shown
from envspec.probe.running import Ended
from envspec.report.findings import Finding, Report, error, report

_TAIL = 8
_MOST = 1 << 20


class Outcome(str, Enum):
    """Says how a probe ended."""

    WORKS = "works"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one probe: how it ended, after how long, and what it says it did."""

    name: str
    outcome: Outcome
    seconds: float
    did: tuple[str, ...] = ()


class ProbeReport(Report, frozen=True, kw_only=True):
    """Describes a report with a row for each probe, in the order of the table."""

    probes: tuple[ProbeResult, ...]


def result_of(ended: Ended) -> ProbeResult:
    """Return the row of a probe."""
    failed = Outcome.TIMED_OUT if ended.timed_out else Outcome.FAILED
    did = [line[len("probe: ") :] for line in _lines(ended) if line.startswith("probe: ")]
    return ProbeResult(
        name=ended.row.name,
        outcome=Outcome.WORKS if ended.code == 0 else failed,
        seconds=round(ended.seconds, 1),
        did=tuple(shown(line) for line in did),
    )


def finding_of(ended: Ended, facts: EnvironmentFacts) -> Finding | None:
    """Return the finding that says why a probe failed; None if it did not."""
    if ended.timed_out:
        return error(
            "probe-timeout",
            ended.row.name,
            f"{ended.row.name} ({ended.row.means}) had not ended after {ended.row.timeout} s",
            evidence=_tail(ended),
            fix=f"run it alone (envspec probe {ended.row.name}); a stuck lock or a machine under load are the usual reasons",
        )
    if ended.code == 0:
        return None
    what = f"{ended.row.name} ({ended.row.means}) fails in this environment"
    with ended.log.open("rb") as stream:
        found = diagnose(stream, facts=facts)
    if found.cause is None:
        if ended.code < 0:
            what += f": ended by {signal.Signals(-ended.code).name}"
        return error("probe-failed", ended.row.name, what, evidence=_tail(ended), fix=_by_hand(ended))
    cause = found.cause
    evidence = [f"line {cause.line} of its output: {shown(cause.text)}", cause.meaning]
    if cause.confidence != "high":
        evidence.append(f"confidence: {cause.confidence}")
    evidence += [f"also: {shown(other.text)}" for other in found.others[:2]]
    return error("probe-failed", ended.row.name, what, evidence=evidence, fix=cause.fix)


def _by_hand(ended: Ended) -> str:
    return f"look at all of its output: envspec probe {ended.row.name} --logs DIR"


def _lines(ended: Ended) -> list[str]:
    with ended.log.open("rb") as file:
        file.seek(max(0, ended.log.stat().st_size - _MOST))
        return file.read().decode("utf-8", "replace").splitlines()


def _tail(ended: Ended) -> list[str]:
    lines = [line for line in _lines(ended) if line.strip()]
    return [shown(line) for line in lines[-_TAIL:]] or ["it printed nothing"]


def probe_report(subject: str, results: Iterable[ProbeResult], findings: Iterable[Finding]) -> ProbeReport:
    """Return the report of a run."""
    made = report("probe", subject, findings)
    return ProbeReport(
        command=made.command, subject=made.subject, findings=made.findings, probes=tuple(results)
    )
