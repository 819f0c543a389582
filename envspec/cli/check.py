"""`envspec check`: may these live together? With `--fix`, the profile is mended until they may."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from envspec.check.fix import FixResult, fix_profile
from envspec.check.input import target_of
from envspec.check.run import check_profile
from envspec.profile import Profile, read_profile
from envspec.report.findings import Report
from envspec.report.progress import Progress
from envspec.uv.run import Uv
from envspec.venv.interpreter import resolving_python


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for. `frozen`: look at the lock as it is, whatever the profile says."""

    profile: Path
    python: str | None = None
    offline: bool = False
    frozen: bool = False
    allowed: frozenset[str] = frozenset()


def run_check(request: CheckRequest, progress: Progress) -> Report:
    """Check a profile's lock; the report has findings whatever they are, the caller makes the exit code."""
    uv = Uv(offline=request.offline)
    return _check(read_profile(request.profile), request, uv, progress)


def _check(profile: Profile, request: CheckRequest, uv: Uv, progress: Progress) -> Report:
    return check_profile(
        profile,
        uv,
        os.environ,
        progress,
        python=request.python,
        frozen=request.frozen,
        allowed=request.allowed,
    )


def run_fix(request: CheckRequest, progress: Progress) -> FixResult:
    """Mend the profile in place until no error is left that can be mended; the lock follows with the next build."""
    uv = Uv(offline=request.offline)

    def check(changed: Profile) -> Report:
        return _check(changed, request, uv, progress)

    profile = read_profile(request.profile)
    target = target_of(profile, request.python)
    return fix_profile(request.profile, target, uv, resolving_python(profile, uv), check)
