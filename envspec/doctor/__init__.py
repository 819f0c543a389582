"""`envspec doctor`: is this machine fit for the profile, and does anything on it mislead the compilers?

The checks in `checks/` are rules over two facts: `Host`, which is all that is read of the machine, below one root, and
`Wanted`, what it is checked for. It reads. It writes nothing, asks no network, imports no torch and no CUDA.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envspec.doctor.checks import CHECKS, Wanted
from envspec.host.machine import Host
from envspec.report.findings import Finding
from envspec.report.rules import Rule, run_rules


def run_checks(host: Host, wanted: Wanted, checks: Iterable[Rule] | None = None) -> Iterator[Finding]:
    """Yield what these checks (all, if none are named) find on a machine; one that fails is an unknown finding."""
    yield from run_rules(CHECKS.all() if checks is None else checks, {Host: host, Wanted: wanted})
