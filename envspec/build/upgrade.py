"""`envspec upgrade`: new lock, check, difference, confirmation, build. Until the switch the old generation stays current."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envspec.build.pipeline import BuildRequest, BuildResult, build
from envspec.check.facts import CheckInput
from envspec.check.run import check_lock
from envspec.lock import read_lock
from envspec.lock.model import compare
from envspec.lock.resolve import resolve
from envspec.lock.targets import Target
from envspec.profile import read_profile
from envspec.report.errors import StageError, UsageError
from envspec.report.progress import Progress
from envspec.report.text import count_findings, render_finding
from envspec.uv.run import Uv
from envspec.venv.interpreter import choose_python


class UpgradeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for; no packages means all."""

    profile: Path
    packages: tuple[str, ...]
    out: Path
    python: str | None = None
    offline: bool = False
    allowed: frozenset[str] = frozenset()


def run_upgrade(
    request: UpgradeRequest, confirm: Callable[[list[str]], bool], progress: Progress
) -> BuildResult | None:
    """Upgrade and build. None where there was nothing to upgrade or the user said no; the lock is then as it was.

    The new lock is written at the end of a build that passed, just before the switch: whatever fails, or ends envspec
    before that, leaves the old lock and the old environment together.
    """
    profile = read_profile(request.profile)
    uv = Uv(offline=request.offline)
    old = read_lock(profile.lock_path)
    wanted = [canonicalize_name(name) for name in request.packages]
    if old is not None:
        unknown = sorted(set(wanted) - {p.name for p in old.packages})
        if unknown:
            raise UsageError(
                "unknown-package", f"{unknown[0]} is not in the lock", where=str(profile.lock_path)
            )
    python = choose_python(profile, uv, Path("/"), wanted=request.python)
    with progress.stage("lock") as stage:
        new = resolve(profile, uv.with_reporter(stage.detail), python.path, keep=old, upgrade=wanted).lock
        changes = compare(old, new) if old is not None else ()
        stage.result = f"{len(new.packages)} packages, {len(changes)} changed"
    if old is not None and not changes and old.digest == new.digest:
        return None
    with progress.stage("check") as stage:
        target = Target(python.version, python.machine)
        found = check_lock(
            CheckInput(profile, new),
            target,
            uv,
            python.path,
            os.environ,
            allowed=request.allowed,
            on_progress=stage.detail,
        )
        stage.result = count_findings(found)
    if found.errors:
        for finding in found.errors:
            progress.note(render_finding(finding))
        raise StageError(
            "check-failed",
            "the upgraded set cannot work: " + ", ".join(sorted({f.code for f in found.errors})),
            where=str(request.profile),
            fix="upgrade fewer packages, or pin the ones named above; nothing was changed",
        )
    if not confirm([str(change) for change in changes]):
        return None
    return build(
        BuildRequest(
            profile=request.profile,
            out=request.out,
            python=request.python,
            offline=request.offline,
            allowed=request.allowed,
            lock=new,
        ),
        progress,
    )
