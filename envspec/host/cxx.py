"""The host's C++ compiler, which nvcc and every JIT call for the host side of a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from envspec.data.compatibility import compiler_limit
from envspec.host.commands import Command, run
from envspec.host.machine import Host
from envspec.report.errors import ExternalError
from envspec.report.findings import Finding, error, unknown


class HostCompiler(msgspec.Struct, frozen=True):
    """Describes a C++ compiler of a machine: `family` is gcc or clang, `version` its major and minor."""

    family: str
    version: tuple[int, int]
    path: str


def find_cxx(host: Host) -> str:
    """Return the path of the C++ compiler that JITs will use: $CXX, else c++, else g++. Raise ExternalError `no-compiler`."""
    named = host.environ.get("CXX", "").split()
    for name in (*named[:1], "c++", "g++"):
        found = host.which(name)
        if found is not None:
            return found
    raise ExternalError(
        "no-compiler",
        "there is no C++ compiler",
        where="c++ and g++ on PATH" + (f", $CXX={named[0]}" if named else ""),
        why="nvcc and every just-in-time compiler call it for the host side of a kernel",
        fix="install one: apt-get install g++, or dnf install gcc-c++",
    )


def ask_compiler(host: Host, path: str) -> HostCompiler | None:
    """Run a compiler and return what it says it is, or None if it does not say."""
    plain = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    try:
        done = run(Command(arguments=(str(host.at(path)), "--version"), environment=plain), seconds=20)
    except OSError:
        return None
    lines = done.out.decode("utf-8", "replace").splitlines()
    # `g++ (Debian 12.2.0-14+deb12u1) 12.2.0`: the version is the last one of the line.
    numbers = re.findall(r"\b(\d+)\.(\d+)(?:\.\d+)*", lines[0]) if lines else []
    if not numbers:
        return None
    family = "clang" if "clang" in lines[0].lower() else "gcc"
    found = numbers[0] if family == "clang" else numbers[-1]
    return HostCompiler(family, (int(found[0]), int(found[1])), path)


def unaccepted(compiler: HostCompiler, subject: str, cuda: tuple[int, int]) -> Iterator[Finding]:
    """Yield a finding `host-compiler` if nvcc of a CUDA release refuses a compiler, or if that is not known.

    It is an error wherever it is found: nothing compiles with such a compiler.
    """
    family, (major, minor) = compiler.family, compiler.version
    release = f"{cuda[0]}.{cuda[1]}"
    limit = compiler_limit(family, cuda)
    if limit is None:
        yield unknown(
            "host-compiler",
            subject,
            f"it is not known which {family} nvcc of CUDA {release} accepts",
            evidence=[f"{compiler.path} is {family} {major}.{minor}"],
            fix="envspec probe cuda-plain tries it in a built environment",
        )
    elif major > limit:
        cc, cxx = ("clang", "clang++") if family == "clang" else ("gcc", "g++")
        yield error(
            "host-compiler",
            subject,
            f"{compiler.path} is {family} {major}.{minor}; nvcc of CUDA {release} accepts up to {family} {limit}",
            evidence=[f"seen as: #error -- unsupported {'clang' if family == 'clang' else 'GNU'} version!"],
            fix=f"install {cxx}-{limit} and set CC={cc}-{limit} CXX={cxx}-{limit}",
        )
