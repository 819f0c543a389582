"""Host compiler, Python's headers, the C and C++ libraries, build tools."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator

from envspec import elf
from envspec.data.caller import SystemDemand, system_demands
from envspec.data.compatibility import compiler_limit
from envspec.doctor.checks import CHECKS, Wanted
from envspec.host.cxx import ask_compiler, find_cxx, unaccepted
from envspec.host.ld_cache import candidates, find
from envspec.host.machine import Host
from envspec.report.errors import EnvspecError
from envspec.report.findings import Finding, error, note, unknown, warning


@CHECKS.rule(
    "glibc and libstdc++ are as new as the wheels ask for, and no older copy stands before the system's."
)
def host_libc(host: Host, wanted: Wanted) -> Iterator[Finding]:
    machine = platform.machine()
    if host.glob("/lib/ld-musl-*.so.1") and find(host, "libc.so.6") is None:
        yield error(
            "host-libc", "libc", "this system uses musl; the wheels are made for glibc",
            fix="use a distribution with glibc 2.34 or newer (Debian 12, Ubuntu 22.04, RHEL 9)",
        )  # fmt: skip
        return
    glibc = _defined(host, "libc.so.6", "GLIBC")
    if glibc is None:
        yield unknown("host-libc", "libc.so.6", f"the version of glibc cannot be read on this {machine}")
    elif unmet := _unmet("libc.so.6", glibc[0]):
        yield (error if unmet.severity == "error" else warning)(
            "host-libc",
            glibc[1],
            f"glibc is {_dotted(glibc[0])}; {unmet.whose} needs {unmet.version}",
            evidence=[f"seen as: version `GLIBC_{unmet.version}' not found"],
            fix="use a newer distribution, or a container of one (Debian 12, Ubuntu 22.04, RHEL 9)",
        )
    yield from _cxx_library(host)


def _cxx_library(host: Host) -> Iterator[Finding]:
    copies = list(candidates(host, "libstdc++.so.6"))
    if not copies:
        yield error(
            "host-libc", "libstdc++.so.6", "the loader finds no libstdc++.so.6, which torch needs",
            fix="apt-get install libstdc++6, or dnf install libstdc++",
        )  # fmt: skip
        return
    versions = [(path, why, _highest(host, path, "GLIBCXX")) for path, why in copies]
    path, why, version = versions[0]
    if version is None:
        yield unknown("host-libc", path, f"the version of {path} cannot be read")
        return
    if unmet := _unmet("libstdc++.so.6", version):
        yield error(
            "host-libc",
            path,
            f"{path} goes up to GLIBCXX_{_dotted(version)}; {unmet.whose} needs GLIBCXX_{unmet.version}",
            evidence=[f"found by {why}", f"seen as: version `GLIBCXX_{unmet.version}' not found"],
            fix="use a newer distribution"
            if why != "LD_LIBRARY_PATH"
            else "take its directory out of LD_LIBRARY_PATH",
        )
        return
    newer = next(((p, v) for p, _, v in versions[1:] if v is not None and v > version), None)
    if newer is not None and why == "LD_LIBRARY_PATH":
        yield warning(
            "host-libc",
            path,
            f"{path} (GLIBCXX_{_dotted(version)}) is loaded instead of the newer {newer[0]} (GLIBCXX_{_dotted(newer[1])})",
            evidence=[
                "what the host compiler makes needs the newer one",
                "seen as: version `GLIBCXX_...' not found",
            ],
            fix=f"take {path.rpartition('/')[0]} out of LD_LIBRARY_PATH",
        )


def _unmet(library: str, version: tuple[int, ...]) -> SystemDemand | None:
    """The first demand on a library that a version does not meet; the lowest is the one that most wheels have."""
    return next((demand for demand in system_demands(library) if version < demand.release), None)


def _defined(host: Host, soname: str, prefix: str) -> tuple[tuple[int, ...], str] | None:
    found = find(host, soname)
    version = _highest(host, found[0], prefix) if found else None
    return (version, found[0]) if found and version else None


def _highest(host: Host, path: str, prefix: str) -> tuple[int, ...] | None:
    """The highest version of a prefix that a library defines."""
    try:
        defined = elf.read(host.at(host.real(path))).version_definitions
    except (elf.ElfError, OSError):
        return None
    numbers = [re.fullmatch(rf"{prefix}_(\d+(?:\.\d+)*)", row.version) for row in defined]
    return max((tuple(map(int, n[1].split("."))) for n in numbers if n), default=None)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


@CHECKS.rule("ninja is brought by the profile or is on PATH; git is there if something is built from source.")
def host_tools(host: Host, wanted: Wanted) -> Iterator[Finding]:
    brought = wanted.profile is not None and any(p.name == "ninja" for p in wanted.profile.packages)
    if not brought and host.which("ninja") is None:
        yield (error if wanted.profile is not None else warning)(
            "host-tools",
            "ninja",
            "there is no ninja: flashinfer, torch and SGLang start it by name for every kernel",
            evidence=["neither on PATH nor among the profile's packages"],
            fix='add ninja = "*" to [packages] of the profile',
        )
    if wanted.profile is not None and wanted.profile.allow_sdists and host.which("git") is None:
        yield warning(
            "host-tools",
            "git",
            "there is no git, and the profile builds from source: such builds often call it",
            evidence=[f"allowed to build: {', '.join(wanted.profile.allow_sdists)}"],
            fix="apt-get install git, or dnf install git",
        )


@CHECKS.rule(
    "There is a C++ compiler, one that the profile's nvcc accepts, and CC is of the same kind.", slow=True
)
def host_compiler(host: Host, wanted: Wanted) -> Iterator[Finding]:
    try:
        path = find_cxx(host)
    except EnvspecError as lacking:
        yield error(
            "host-compiler", "c++", f"{lacking.what}: {lacking.why}", evidence=[f"looked for {lacking.where}"],
            fix=lacking.fix,
        )  # fmt: skip
        return
    named = host.environ.get("CXX", "").split()
    if named and host.which(named[0]) is None:
        yield warning(
            "host-compiler", "CXX", f"CXX={named[0]} is not there; some JITs take {path}, others fail",
            fix="unset CXX, or install it",
        )  # fmt: skip
    yield from _suits(host, wanted, path, "CXX" if named else path)
    cc = host.environ.get("CC", "").split()
    if cc:
        found = host.which(cc[0])
        if found is None:
            yield error(
                "host-compiler", "CC", f"CC={cc[0]} is not there, and flashinfer gives it to nvcc (-ccbin)",
                fix="unset CC, or install it",
            )  # fmt: skip
        elif host.real(found) != host.real(path):
            yield from _suits(host, wanted, found, "CC")
    conda = host.environ.get("CONDA_PREFIX", "")
    if conda and path.startswith(conda.rstrip("/") + "/"):
        yield warning(
            "host-compiler",
            path,
            f"{path} is conda's: it compiles against conda's own C library and may not find the system's",
            fix="conda deactivate, or set CC and CXX to the system's compiler",
        )


def _suits(host: Host, wanted: Wanted, path: str, subject: str) -> Iterator[Finding]:
    compiler = ask_compiler(host, path)
    if compiler is None:
        yield unknown("host-compiler", subject, f"{path} does not tell its version")
        return
    family, (major, minor) = compiler.family, compiler.version
    if wanted.cuda is None:
        yield note("host-compiler", subject, f"{path} is {family} {major}.{minor}")
        return
    found = list(unaccepted(compiler, subject, wanted.cuda))
    yield from found
    if not found:
        limit = compiler_limit(family, wanted.cuda)
        yield note(
            "host-compiler", subject, f"{path} is {family} {major}.{minor}; nvcc accepts up to {limit}"
        )


@CHECKS.rule("The Python that the profile would get is there, and has Python.h.", slow=True)
def host_python(host: Host, wanted: Wanted) -> Iterator[Finding]:
    if wanted.profile is None:
        return
    python = wanted.uv.python_for(wanted.profile)
    if not python.headers:
        yield error(
            "host-python",
            str(python.path),
            f"Python {python.version} at {python.path} has no Python.h: triton and torch extensions cannot be compiled",
            evidence=["seen as: fatal error: Python.h: No such file or directory"],
            fix=f"apt-get install python{python.minor}-dev (RHEL: python{python.minor}-devel), "
            f"or uv python install {python.minor}",
        )
    else:
        yield note("host-python", str(python.path), f"Python {python.version} at {python.path}, with headers")
