"""A file system of a few megabytes, to be filled."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def small_disk(at: Path, size: str) -> Iterator[Path]:
    """Mount a tmpfs of its own. Raises RuntimeError where that is not allowed."""
    at.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(at)], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"a tmpfs has to be mounted (run as root): {done.stderr.strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)
