"""Can the interpreter of a venv be started, and is it the one that the venv was made for? Nothing is run for the answer.

The venv's `pyvenv.cfg` names the version. The interpreter is known by its name, `python3.12`, where its real path has one;
a file that is called otherwise is believed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from envspec.fs import read_start

_CONFIG = 1 << 16
_VERSION = re.compile(r"^version(?:_info)?\s*=\s*(\d+\.\d+)", re.MULTILINE)
_NAME = re.compile(r"python(\d+\.\d+)")


def unusable_python(venv: Path) -> str:
    """Say why the interpreter of a venv cannot be used, as the end of a sentence about it; empty where it can."""
    python = venv / "bin" / "python"
    real = Path(os.path.realpath(python))
    if not real.is_file():
        return f"leads to {real}, which is not there" if python.is_symlink() else "is not there"
    if not os.access(real, os.X_OK):
        return f"leads to {real}, which cannot be executed"
    try:
        text = read_start(venv / "pyvenv.cfg", _CONFIG).decode("utf-8", "replace")
    except OSError:
        return "has no pyvenv.cfg beside it"
    wanted, named = _VERSION.search(text), _NAME.fullmatch(real.name)
    if wanted is None:
        return "belongs to a pyvenv.cfg that names no version"
    if named is not None and named[1] != wanted[1]:
        return f"leads to {real}, and the environment was made for Python {wanted[1]}"
    return ""
