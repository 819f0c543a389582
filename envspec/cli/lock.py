"""`envspec lock`: the lock stage alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from envspec.lock.ensure import LockMode, describe_lock, ensure_lock, lock_notes
from envspec.profile import read_profile
from envspec.report.progress import Progress
from envspec.uv.run import Uv
from envspec.venv.interpreter import choose_python


class LockRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for. `upgrade`: None frees no version, empty all, names those."""

    profile: Path
    python: str | None = None
    upgrade: list[str] | None = None
    lock_mode: LockMode = LockMode.UPDATE
    offline: bool = False


def run_lock(request: LockRequest, progress: Progress) -> list[str]:
    """Bring the lock up to date; the lines that tell what changed."""
    profile = read_profile(request.profile)
    with progress.stage("lock") as stage, tempfile.TemporaryDirectory(prefix="envspec-") as work:
        uv = Uv(offline=request.offline, reporter=stage.detail)
        python = choose_python(profile, uv, Path(work), wanted=request.python)
        outcome = ensure_lock(profile, uv, python.path, request.lock_mode, request.upgrade)
        stage.result = f"{len(outcome.lock.packages)} packages, {describe_lock(outcome)}"
    return lock_notes(outcome)
