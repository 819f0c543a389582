"""The check as a whole: facts, rules, report. `envspec check` calls it, and every build before it installs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from envspec.check.collect import collect_facts
from envspec.check.facts import CheckInput
from envspec.check.input import read_input, target_of
from envspec.check.rules import RULES
from envspec.host.cxx import HostCompiler, ask_compiler, find_cxx
from envspec.host.machine import Host
from envspec.lock.targets import Target
from envspec.profile import Profile
from envspec.report.errors import ExternalError, UsageError
from envspec.report.findings import FailedReport, Finding, Report, Severity, report
from envspec.report.progress import Progress
from envspec.report.rules import Missing, run_rules
from envspec.uv.run import Uv
from envspec.venv.interpreter import resolving_python


def check_profile(
    profile: Profile,
    uv: Uv,
    environ: Mapping[str, str],
    progress: Progress,
    *,
    python: str | None = None,
    frozen: bool = False,
    allowed: frozenset[str] = frozenset(),
) -> Report:
    """Check the lock of a profile, or what a new lock would hold, for one Python (a path or a version) on this machine."""
    given = read_input(profile, uv, progress, frozen=frozen)
    target = target_of(profile, python)
    with progress.stage("check") as stage:
        found = check_lock(
            given,
            target,
            uv,
            resolving_python(profile, uv),
            environ,
            allowed=allowed,
            on_progress=stage.detail,
        )
        stage.result = f"Python {target.python} on {target.machine}"
    return found


def check_lock(
    given: CheckInput,
    target: Target,
    uv: Uv,
    python: Path,
    environ: Mapping[str, str],
    *,
    allowed: frozenset[str] = frozenset(),
    on_progress: Callable[[str], None] = lambda text: None,
) -> Report:
    """Run every rule on a lock for one target. What cannot be known is answered "unknown", never "ok".

    `python` runs uv's resolutions. Errors of an `allowed` code become notes.
    """
    facts = collect_facts(given, target, uv, python, on_progress)
    facts[HostCompiler] = host_compiler(environ)
    findings = list(run_rules(RULES.all(), facts, allowed))
    if given.refusal is not None:
        findings.append(_refused(given.refusal))
    return report("check", str(given.profile.path), findings)


def require_working(found: Report, profile: Path, *, upgraded: bool = False) -> None:
    """Raise FailedReport `check-failed`, which carries the report, if the check of a profile found an error.

    `upgraded`: what was checked is not the profile's lock yet, but what would become it.
    """
    if not found.errors:
        return
    path = shlex.quote(str(profile))
    if upgraded:
        what = "the upgraded set cannot work"
        fix = "upgrade fewer packages, or pin the ones named above; nothing was changed"
    else:
        what = "the locked set cannot work"
        fix = f"envspec check --fix {path}, or accept it: --allow {found.error_codes[0]}"
    raise FailedReport("check-failed", what, found, where=str(profile), fix=fix)


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
    """Return the C++ compiler that builds here would use."""
    host = Host(environ=environ)
    try:
        path = find_cxx(host)
    except ExternalError as error:
        return Missing(error.what)
    return ask_compiler(host, path) or Missing(f"{path} does not tell its version")
