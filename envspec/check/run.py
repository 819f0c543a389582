"""The check as a whole: facts, rules, report. Used by `envspec check` and by the build before it installs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from envspec.check.collect import gather
from envspec.check.engine import all_rules, run_rules
from envspec.check.facts import HostCompiler, Origin
from envspec.host.cxx import compiler_version, find_cxx
from envspec.lock.targets import Target
from envspec.report.errors import UsageError, WorldError
from envspec.report.findings import Finding, Report, Severity, report
from envspec.uv.run import Uv
from envspec.wheels.file import Missing


def check_lock(
    origin: Origin,
    target: Target,
    uv: Uv,
    python: Path,
    environ: Mapping[str, str],
    *,
    allowed: frozenset[str] = frozenset(),
    refusal: UsageError | None = None,
    on_progress: Callable[[str], None] = lambda text: None,
) -> Report:
    """Every rule on a lock for one target. What cannot be known is answered "unknown", never "ok".

    `refusal` is why the resolver has no set for this profile, if so; the lock is then one in which the pins win.
    """
    facts = gather(origin, target, uv, python, on_progress)
    facts[HostCompiler] = host_compiler(environ)
    findings = list(run_rules(all_rules(), facts, allowed))
    if refusal is not None:
        findings.append(_refused(refusal))
    return report("check", str(origin.profile.path), findings)


def _refused(refusal: UsageError) -> Finding:
    return Finding(
        code=refusal.code,
        severity=Severity.ERROR,
        subject="packages",
        message=refusal.what,
        evidence=tuple(line.strip() for line in refusal.why.splitlines()),
        fix=refusal.fix,
    )


def host_compiler(environ: Mapping[str, str]) -> HostCompiler | Missing:
    """The C++ compiler that builds here would use."""
    try:
        cxx = find_cxx(environ)
    except WorldError as error:
        return Missing(error.what)
    found = compiler_version(cxx)
    if found is None:
        return Missing(f"{cxx} does not tell its version")
    return HostCompiler(family=found[0], version=found[1], path=str(cxx))
