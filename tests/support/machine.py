"""A machine in a directory: real files below a root, real small programs, and what cannot be a file by hand."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

from envspec.doctor import run_checks
from envspec.doctor.checks import CHECKS, UvAnswers, Wanted
from envspec.host.machine import Host, Space
from envspec.host.nvml import NvmlGpu
from envspec.host.python import ChosenPython
from envspec.profile import Profile
from envspec.report.errors import UsageError
from envspec.report.findings import Finding, Severity

GIB = 1 << 30
_BASE = {
    "/proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 50331648 kB\n",
    "/proc/self/mounts": "overlay / overlay rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n",
    "/proc/self/status": "Name:\tx\nCapEff:\t0000000000000000\nSeccomp:\t0\n",
    "/proc/self/limits": "Max open files            65536                65536                files\n"
    "Max locked memory         unlimited            unlimited            bytes\n",
}


class Machine(Host):
    """Reads as the real host does. Space of disks, NVML and the choice of a Python are set by hand."""

    def __init__(self, root: Path, **environ: str) -> None:
        super().__init__(root, {"PATH": "/usr/bin", "HOME": "/home/me", **environ})
        self.spaces = {"/": Space(500 * GIB, 1000 * GIB), "/dev/shm": Space(16 * GIB, 16 * GIB)}
        self.gpus: tuple[NvmlGpu, ...] | None = None
        self.python: ChosenPython | None = None
        self.uv_cache = ""

    def put(self, path: str, content: str | bytes = "") -> Machine:
        """Write a file."""
        at = self.at(path)
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(content.encode() if isinstance(content, str) else content)
        return self

    def program(self, path: str, prints: str = "") -> Machine:
        """Write a program that prints a line."""
        self.put(path, f"#!/bin/sh\necho '{prints}'\n")
        self.at(path).chmod(0o755)
        return self

    def link(self, path: str, target: str) -> Machine:
        """Make a link."""
        at = self.at(path)
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(target)
        return self

    def directory(self, path: str) -> Machine:
        """Make a directory."""
        self.at(path).mkdir(parents=True, exist_ok=True)
        return self

    def driver(
        self, version: str, *, model: str = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"
    ) -> Machine:
        """A loaded driver, one GPU and its device files."""
        self.put(
            "/proc/driver/nvidia/version",
            f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release\n",
        )
        self.put("/proc/driver/nvidia/gpus/0000:01:00.0/information", f"Model: \t\t {model}\nIRQ: 3\n")
        for node in ("nvidia0", "nvidiactl", "nvidia-uvm"):
            self.put(f"/dev/{node}")
        return self

    def space(self, path: str) -> Space | None:
        inside = [point for point in self.spaces if path == point or path.startswith(point.rstrip("/") + "/")]
        return self.spaces[max(inside, key=len)]

    def nvml(self) -> tuple[NvmlGpu, ...] | None:
        return self.gpus

    @property
    def uv(self) -> UvAnswers:
        """What uv would say here."""
        return _MachinesUv(self)


class _MachinesUv(UvAnswers):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def python_for(self, profile: Profile) -> ChosenPython:
        if self._machine.python is None:
            raise UsageError("no-python", "no Python was found", fix="install one")
        return self._machine.python

    def cache_directory(self) -> str:
        return self._machine.uv_cache or f"{self._machine.environ['HOME']}/.cache/uv"


def healthy(root: Path, **environ: str) -> Machine:
    """A machine about which no check has anything to say but notes."""
    machine = Machine(root, **environ)
    for path, text in _BASE.items():
        machine.put(path, text)
    for path in ("/tmp", "/home/me/.cache", "/dev/shm", "/out"):
        machine.directory(path)
    machine.program("/usr/bin/g++-14", "g++-14 (Debian 14.2.0-19) 14.2.0").link("/usr/bin/c++", "g++-14")
    machine.program("/usr/bin/ninja").program("/usr/bin/git")
    library(machine, "/usr/lib/x86_64-linux-gnu/libc.so.6", "GLIBC_2.28", "GLIBC_2.36")
    library(machine, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "GLIBCXX_3.4.22", "GLIBCXX_3.4.30")
    machine.put("/etc/ld.so.cache", cache(
        {name: f"/usr/lib/x86_64-linux-gnu/{name}" for name in ("libc.so.6", "libstdc++.so.6")}
    ))  # fmt: skip
    machine.python = ChosenPython(
        version="3.12.4",
        implementation="cpython",
        machine="x86_64",
        path=Path("/usr/bin/python3.12"),
        headers=True,
    )
    return machine


def library(machine: Machine, path: str, *versions: str) -> None:
    """A real shared library that defines symbol versions."""
    at = machine.at(path)
    at.parent.mkdir(parents=True, exist_ok=True)
    script = at.with_suffix(".map")
    names = [f"{version} {{ global: f{number}; }};" for number, version in enumerate(versions)]
    script.write_text("\n".join(names))
    source = "".join(f"void f{number}(void) {{}}\n" for number in range(len(versions)))
    subprocess.run(
        ["cc", "-shared", "-nostdlib", "-fPIC", "-x", "c", "-", "-o", str(at), f"-Wl,--version-script={script}"],
        input=source.encode(), check=True,
    )  # fmt: skip
    script.unlink()


def cache(files: dict[str, str]) -> bytes:
    """An ld.so.cache of glibc's new form."""
    strings, entries = b"", []
    start = 48 + 24 * len(files)
    flags = {"x86_64": 0x0303, "aarch64": 0x0A03}[os.uname().machine]
    for soname, path in files.items():
        key = start + len(strings)
        strings += soname.encode() + b"\0"
        value = start + len(strings)
        strings += path.encode() + b"\0"
        entries.append(struct.pack("<iIIIQ", flags, key, value, 0, 0))
    head = b"glibc-ld.so.cache1.1" + struct.pack("<IIB3xI12x", len(files), len(strings), 2, 0)
    return head + b"".join(entries) + strings


def findings(machine: Machine, name: str, profile: Profile | None = None, out: str = "/out") -> list[Finding]:
    """What one check finds."""
    rows = [row for row in CHECKS.all() if row.code == name]
    assert rows, name
    return list(run_checks(machine, Wanted(profile=profile, out=out, uv=machine.uv), rows))


def worse(found: list[Finding]) -> list[Finding]:
    """All but notes."""
    return [finding for finding in found if finding.severity is not Severity.NOTE]
