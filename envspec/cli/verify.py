"""`envspec verify` and `envspec repair`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from envspec.integrity.drift_findings import verify
from envspec.integrity.repair import Repaired, Request, repair
from envspec.output.claim import current_generation
from envspec.profile import read_profile
from envspec.report.findings import Report
from envspec.report.progress import Progress
from envspec.uv.project import index_tables
from envspec.uv.run import Uv


def run_verify(out: Path, check_contents: bool, progress: Progress) -> Report:
    """What has drifted in the current generation."""
    output, generation = current_generation(out)
    with progress.stage("verify") as stage:
        found = verify(output, generation, check_contents=check_contents, detail=stage.detail)
        stage.result = f"generation {generation.number}, " + (
            "by content" if check_contents else "by size, time and inode"
        )
    return found


def run_repair(
    out: Path,
    profile: Path | None,
    prune: bool,
    check_contents: bool,
    offline: bool,
    progress: Progress,
    waiting: Callable[[str], None],
) -> Repaired:
    """Put back what has drifted in the current generation.

    `profile` is needed only where packages come from an index that the profile names itself.
    """
    output = current_generation(out)[0]
    index_lines = index_tables(read_profile(profile), open_to_all=True) if profile is not None else []
    request = Request(index_lines=tuple(index_lines), prune=prune, check_contents=check_contents)
    with output.held(waiting) as held, progress.stage("repair") as stage:
        uv = Uv(offline=offline, reporter=stage.detail, inherit_fds=(held,))
        generation = current_generation(out)[1]
        done = repair(output, generation, uv, request, stage.detail)
        stage.result = _summary(done)
    return done


def _summary(done: Repaired) -> str:
    parts = []
    if done.files:
        packages = f" of {', '.join(done.packages)}" if len(done.packages) in (1, 2, 3) else ""
        packages = packages or (f" of {len(done.packages)} packages" if done.packages else "")
        parts.append(f"{done.files} file{'' if done.files == 1 else 's'}{packages} put back")
    if done.removed:
        parts.append(f"{', '.join(done.removed)} removed")
    if done.toolkit:
        parts.append(f"{done.toolkit} file{'' if done.toolkit == 1 else 's'} of CUDA_HOME put back")
    if done.script:
        parts.append("the environment script written")
    return ", ".join(parts) or "nothing to repair"
