"""What a test needs of the machine beyond Python and a C++ compiler. Where it is missing, the test is skipped with its reason.

With ENVSPEC_TEST_INSIST=1, as in CI, a skipped test fails instead (see tests/conftest.py).
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile

import pytest


def program(name: str) -> pytest.MarkDecorator:
    """Marks a test that calls a program which not every machine has."""
    return pytest.mark.skipif(
        shutil.which(name) is None, reason=f"{name} is not installed (as root: scripts/install-test-deps)"
    )


def mounts() -> pytest.MarkDecorator:
    """Marks a test that mounts a small file system."""
    return pytest.mark.skipif(not _can_mount(), reason="mounts a file system, which takes root")


@functools.cache
def _can_mount() -> bool:
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as at:
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", at], capture_output=True).returncode != 0:
            return False
        subprocess.run(["umount", at], check=True)
    return True
