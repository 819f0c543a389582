"""The host's C++ compiler, which nvcc and every JIT call for the host side of a kernel."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from envspec.errors import WorldError


def find_cxx(environ: Mapping[str, str]) -> Path:
    """The C++ compiler that JITs will use: $CXX, else c++, else g++. Raises WorldError `no-compiler`."""
    named = environ.get("CXX", "").split()
    for name in (*named[:1], "c++", "g++"):
        found = shutil.which(name, path=environ.get("PATH"))
        if found:
            return Path(found)
    raise WorldError(
        "no-compiler",
        "there is no C++ compiler",
        where="c++ and g++ on PATH" + (f", $CXX={named[0]}" if named else ""),
        why="nvcc and every just-in-time compiler call it for the host side of a kernel",
        fix="install one: apt-get install g++, or dnf install gcc-c++",
    )
