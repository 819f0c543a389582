"""The host's C++ compiler, which nvcc and every JIT call for the host side of a kernel."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from envspec.data.compatibility import compiler_limit
from envspec.host.commands import Command, run
from envspec.report.errors import WorldError
from envspec.report.findings import Finding, error, unknown


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


def compiler_version(cxx: Path) -> tuple[str, tuple[int, int]] | None:
    """(`gcc` or `clang`, (major, minor)) of a compiler; None if it does not say."""
    plain = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    try:
        done = run(Command(arguments=(str(cxx), "--version"), environment=plain), seconds=20)
    except OSError:
        return None
    lines = done.out.decode("utf-8", "replace").splitlines()
    # `g++ (Debian 12.2.0-14+deb12u1) 12.2.0`: the version is the last one of the line.
    numbers = re.findall(r"\b(\d+)\.(\d+)(?:\.\d+)*", lines[0]) if lines else []
    if not numbers:
        return None
    family = "clang" if "clang" in lines[0].lower() else "gcc"
    found = numbers[0] if family == "clang" else numbers[-1]
    return family, (int(found[0]), int(found[1]))


def unaccepted(
    path: str, subject: str, version: tuple[str, tuple[int, int]], cuda: tuple[int, int]
) -> Iterator[Finding]:
    """Yield a finding `host-compiler` if nvcc of a CUDA release refuses a compiler, or if that is not known.

    `version` is as `compiler_version` tells it. This is an error wherever it is found: nothing compiles with it.
    """
    family, (major, minor) = version
    release = f"{cuda[0]}.{cuda[1]}"
    limit = compiler_limit(family, cuda)
    if limit is None:
        yield unknown(
            "host-compiler",
            subject,
            f"it is not known which {family} nvcc of CUDA {release} accepts",
            evidence=[f"{path} is {family} {major}.{minor}"],
            fix="envspec probe cuda-plain tries it in a built environment",
        )
    elif major > limit:
        cc, cxx = ("clang", "clang++") if family == "clang" else ("gcc", "g++")
        yield error(
            "host-compiler",
            subject,
            f"{path} is {family} {major}.{minor}; nvcc of CUDA {release} accepts up to {family} {limit}",
            evidence=[f"seen as: #error -- unsupported {'clang' if family == 'clang' else 'GNU'} version!"],
            fix=f"install {cxx}-{limit} and set CC={cc}-{limit} CXX={cxx}-{limit}",
        )
