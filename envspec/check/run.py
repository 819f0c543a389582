"""The check as a whole: facts, rules, report. Used by `envspec check` and by the build before it installs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from envspec.check.engine import all_rules, run_rules
from envspec.check.facts import HostCompiler, Missing, Target
from envspec.check.gather import gather
from envspec.errors import WorldError
from envspec.findings import Report, report
from envspec.host_compiler import compiler_version, find_cxx
from envspec.lock import Lock
from envspec.profile import Profile
from envspec.uv import Uv


def check_lock(
    profile: Profile,
    lock: Lock,
    target: Target,
    uv: Uv,
    python: Path,
    environ: Mapping[str, str],
    *,
    allowed: frozenset[str] = frozenset(),
    on_progress: Callable[[str], None] = lambda text: None,
) -> Report:
    """Every rule on a lock for one target. What cannot be known is answered "unknown", never "ok"."""
    facts = gather(profile, lock, target, uv, python, on_progress)
    facts[HostCompiler] = host_compiler(environ)
    return report("check", str(profile.path), run_rules(all_rules(), facts, allowed))


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
