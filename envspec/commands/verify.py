"""`envspec verify` and `envspec repair`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from envspec.commands.generations import current_generation
from envspec.findings import Report
from envspec.lock.resolve import index_tables
from envspec.profile import read_profile
from envspec.progress import Progress
from envspec.repair import Repaired, repair
from envspec.uv import Uv
from envspec.verify import verify


def run_verify(out: Path, thorough: bool, progress: Progress) -> Report:
    """What has drifted in the current generation."""
    output, generation = current_generation(out)
    with progress.stage("verify") as stage:
        found = verify(output, generation, thorough=thorough, detail=stage.detail)
        stage.result = f"generation {generation.number}, " + (
            "by content" if thorough else "by size, time and inode"
        )
    return found


def run_repair(
    out: Path,
    profile: Path | None,
    prune: bool,
    offline: bool,
    progress: Progress,
    waiting: Callable[[str], None],
) -> Repaired:
    """Put back what has drifted in the current generation.

    `profile` is needed only where packages come from an index that the profile names itself.
    """
    output, generation = current_generation(out)
    uv = Uv(offline=offline)
    index_lines = index_tables(read_profile(profile)) if profile is not None else []
    with output.held(waiting), progress.stage("repair") as stage:
        uv.on_line = stage.detail
        done = repair(output, generation, uv, index_lines, prune=prune, detail=stage.detail)
        parts = [f"{len(done.packages)} packages put back"]
        parts += [f"{len(done.removed)} removed"] if done.removed else []
        parts += [f"{done.toolkit} files of CUDA_HOME"] if done.toolkit else []
        parts += ["the environment script"] if done.script else []
        stage.result = ", ".join(parts)
    return done


__all__ = ["run_repair", "run_verify"]
