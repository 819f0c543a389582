"""Where probes work, how many compilers they may start, and keeping what they printed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from envspec.host.memory import max_jobs
from envspec.report.errors import ExternalError


@contextlib.contextmanager
def scratch_directory(state: Path) -> Iterator[Path]:
    """Make a directory beside the real JIT caches, so that a fault of their disk shows, and remove it at the end.

    Where `state` cannot be written, it is made in the system's temporary directory. A probe that was killed leaves its
    directory behind; the next one removes it.
    """
    with contextlib.suppress(OSError):
        for left in state.glob("probe-*-*"):
            owner = left.name.split("-")[1]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                shutil.rmtree(left, ignore_errors=True)
    prefix = f"probe-{os.getpid()}-"
    try:
        work = Path(tempfile.mkdtemp(prefix=prefix, dir=state))
    except OSError:
        work = Path(tempfile.mkdtemp(prefix=f"envspec-{prefix}"))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def compiler_slots(environment: Mapping[str, str], memory_per_job: int, headroom: int) -> int:
    """Return how many compilers may run at once: what MAX_JOBS says, if that is a number, else what memory allows.

    `memory_per_job` and `headroom` are in bytes.
    """
    given = environment.get("MAX_JOBS", "")
    if given.isascii() and given.isdigit() and 0 < int(given) < 1024:
        return int(given)
    return max_jobs(memory_per_job, headroom=headroom)


def keep_log(log: Path, directory: Path) -> None:
    """Copy a probe's log into a directory, which is made if need be. Raises ExternalError `logs-unwritable`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, directory / log.name)
    except OSError as error:
        raise ExternalError(
            "logs-unwritable",
            f"cannot write to {directory}: {error.strerror}",
            where="--logs",
            fix="name a directory that you may write to",
        ) from None
