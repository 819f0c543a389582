"""Every check: a machine on which it speaks, and one on which it does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from envspec.data.shipped import find_profile
from envspec.doctor.checks import CHECKS
from envspec.host.machine import Space
from envspec.host.nvml import NvmlGpu
from envspec.host.python import ChosenPython
from envspec.profile import Profile, read_profile
from envspec.report.findings import Severity
from envspec.report.text import render_finding
from tests.support.machine import GIB, Machine, cache, findings, healthy, library, worse

Change = Callable[[Machine], object]
ERROR, WARNING, UNKNOWN, NOTE = Severity.ERROR, Severity.WARNING, Severity.UNKNOWN, Severity.NOTE
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


@pytest.fixture(scope="module")
def profile() -> Profile:
    """The shipped profile: 12.0a, CUDA 13.2, driver 580.65.06."""
    return read_profile(find_profile("rtx-pro-6000"))


def _env(**variables: str) -> Change:
    def change(machine: Machine) -> None:
        machine.environ = {**machine.environ, **variables}

    return change


def _mount(point: str, kind: str, options: str) -> Change:
    def change(machine: Machine) -> None:
        table = machine.text("/proc/self/mounts") or ""
        machine.put("/proc/self/mounts", f"{table}some {point} {kind} {options} 0 0\n")

    return change


def _space(point: str, free: int, total: int = 100 * GIB) -> Change:
    return lambda machine: machine.spaces.update({point: Space(free, total)})


def _libcuda(path: str, size: int = 20 << 20) -> Change:
    def change(machine: Machine) -> None:
        machine.put(path)
        os.truncate(machine.at(path), size)

    return change


def _all(*changes: Change) -> Change:
    def change(machine: Machine) -> None:
        for one in changes:
            one(machine)

    return change


def _old_glibc(machine: Machine) -> None:
    library(machine, f"{LIBRARIES}/libc.so.6", "GLIBC_2.17")


def _gpu(machine: Machine) -> None:
    machine.driver("580.95.05")


CASES: list[tuple[str, str, Change, Severity, str]] = [
    (
        "host-driver",
        "too-old",
        lambda m: m.driver("570.86.10"),
        ERROR,
        "driver 570.86.10 is older than 580.65.06",
    ),
    ("host-driver", "none", lambda m: None, WARNING, "no NVIDIA driver is loaded"),
    (
        "host-driver",
        "card-without-driver",
        lambda m: m.put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n").put(
            "/sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n"
        ),
        ERROR,
        "there is an NVIDIA GPU, and no NVIDIA driver is loaded",
    ),
    ("host-gpu", "hidden", _env(CUDA_VISIBLE_DEVICES=""), WARNING, "hides every GPU"),
    (
        "host-gpu",
        "no-device-files",
        lambda m: (_gpu(m), m.at("/dev/nvidia-uvm").unlink()),
        ERROR,
        "/dev/nvidia-uvm",
    ),
    ("host-gpu", "other-architecture", lambda m: m.driver("580.95.05", model="NVIDIA H200"), ERROR, "9.0"),
    (
        "host-gpu",
        "unknown-model",
        lambda m: m.driver("580.95.05", model="NVIDIA X1"),
        UNKNOWN,
        "is not known here",
    ),
    (
        "host-gpu",
        "by-nvml",
        lambda m: (_gpu(m), setattr(m, "gpus", (NvmlGpu("NVIDIA L40S", (8, 9), 48 * GIB),))),
        ERROR,
        "NVIDIA L40S is of architecture 8.9, the profile compiles for 12.0a",
    ),
    (
        "host-libcuda",
        "stub-on-the-path",
        _all(
            _gpu,
            _libcuda("/opt/cuda/lib64/stubs/libcuda.so.1"),
            _env(LD_LIBRARY_PATH="/opt/cuda/lib64/stubs"),
        ),
        ERROR,
        "is a stub for linking",
    ),
    (
        "host-libcuda",
        "small-file-in-the-cache",
        _all(
            _gpu,
            _libcuda("/opt/x/libcuda.so.1", 70000),
            lambda m: m.put("/etc/ld.so.cache", cache({"libcuda.so.1": "/opt/x/libcuda.so.1"})),
        ),
        ERROR,
        "is a stub for linking",
    ),
    (
        "host-libcuda",
        "compat",
        _all(
            _gpu,
            _libcuda("/usr/local/cuda-13.2/compat/libcuda.so.595.45.04"),
            lambda m: m.link("/usr/local/cuda-13.2/compat/libcuda.so.1", "libcuda.so.595.45.04"),
            _env(LD_LIBRARY_PATH="/usr/local/cuda-13.2/compat"),
        ),
        WARNING,
        "of a compat package (595.45.04) over driver 580.95.05",
    ),
    (
        "host-libcuda",
        "left-from-an-older-driver",
        _all(
            _gpu,
            _libcuda(f"{LIBRARIES}/libcuda.so.550.54.14"),
            lambda m: m.link(f"{LIBRARIES}/libcuda.so.1", "libcuda.so.550.54.14"),
        ),
        WARNING,
        "older than the loaded 580.95.05",
    ),
    ("host-libcuda", "not-found", _gpu, ERROR, "the loader finds no libcuda.so.1"),
    (
        "env-lists",
        "leading-colon",
        _env(LD_LIBRARY_PATH=":/opt/lib"),
        WARNING,
        "begins with an empty element",
    ),
    ("env-lists", "trailing-colon", _env(PYTHONPATH="/opt/p:"), WARNING, "ends with an empty element"),
    ("env-lists", "double-colon", _env(PATH="/usr/bin::/bin"), WARNING, "holds an empty element"),
    ("env-stubs", "stubs", _env(LD_LIBRARY_PATH="/usr/local/cuda/lib64/stubs/"), WARNING, "for linking"),
    ("env-stubs", "preload", _env(LD_PRELOAD="/opt/libnccl.so.2"), WARNING, "into every process"),
    (
        "env-libraries",
        "system-cudnn",
        _all(
            _env(LD_LIBRARY_PATH="/usr/local/cuda/lib64"),
            lambda m: m.put("/usr/local/cuda/lib64/libcudnn.so.9"),
        ),
        WARNING,
        "holds libcudnn.so.9: they are loaded instead",
    ),
    ("env-cuda", "nowhere", _env(CUDA_HOME="/usr/local/cuda"), WARNING, "which is no directory"),
    (
        "env-cuda",
        "no-nvcc",
        _all(_env(CUDA_PATH="/c"), lambda m: m.directory("/c")),
        WARNING,
        "which has no bin/nvcc",
    ),
    (
        "env-cuda",
        "another-toolkit",
        _all(
            _env(CUDA_HOME="/c"),
            lambda m: m.program("/c/bin/nvcc").put(
                "/c/version.json", '{"cuda" : {"name": "x", "version" : "12.4.1"}}'
            ),
        ),
        NOTE,
        "is another toolkit, CUDA 12.4",
    ),
    (
        "env-cuda",
        "two-toolkits",
        _all(_env(CUDA_HOME="/a", CUDA_PATH="/b"), lambda m: m.program("/a/bin/nvcc").program("/b/bin/nvcc")),
        WARNING,
        "CUDA_HOME and CUDA_PATH differ: /a, /b",
    ),
    ("env-nvcc", "distribution", lambda m: m.program("/usr/bin/nvcc"), NOTE, "is another toolkit's nvcc"),
    ("env-nvcc", "rocm", lambda m: m.program("/opt/rocm/bin/hipcc"), WARNING, "compile for AMD GPUs"),
    (
        "env-flags",
        "headers",
        _env(CPATH="/usr/local/cuda-12/include"),
        WARNING,
        "inside of the environment, too",
    ),
    (
        "env-flags",
        "nvcc",
        _env(NVCC_APPEND_FLAGS="-allow-unsupported-compiler"),
        WARNING,
        "NVCC_APPEND_FLAGS=",
    ),
    ("env-flags", "harmless", _env(CFLAGS="-O2"), NOTE, "CFLAGS=-O2"),
    ("env-python", "path", _env(PYTHONPATH="/opt/p"), NOTE, "is searched before"),
    (
        "env-python",
        "shadows-torch",
        _all(_env(PYTHONPATH="/opt/p"), lambda m: m.directory("/opt/p/torch")),
        WARNING,
        "is searched before",
    ),
    ("host-disk", "full", _space("/", 100 << 20), ERROR, "the disk of /out is full"),
    ("host-disk", "tight", _space("/", 5 * GIB), WARNING, "5.0 GiB are free for /out"),
    ("host-disk", "noexec", _mount("/out", "ext4", "rw,noexec"), ERROR, "mounted noexec"),
    ("host-disk", "network", _mount("/out", "nfs4", "rw"), WARNING, "lies on nfs4"),
    ("host-tmp", "noexec", _mount("/tmp", "tmpfs", "rw,nosuid,noexec"), WARNING, "/tmp is mounted noexec"),
    ("host-tmp", "missing", _env(TMPDIR="/nowhere"), ERROR, "/nowhere is not there"),
    ("host-tmp", "tight", _space("/tmp", GIB), WARNING, "1.0 GiB are free in /tmp"),
    (
        "host-caches",
        "dangling",
        lambda m: m.link("/home/me/.cache/uv", "/data/gone"),
        ERROR,
        "/home/me/.cache/uv is a dangling link",
    ),
    (
        "host-caches",
        "where-only-uv-knows",
        lambda m: (setattr(m, "uv_cache", "/data/uv"), m.put("/data/uv")),
        ERROR,
        "/data/uv is not a directory",
    ),
    ("host-caches", "file", lambda m: m.put("/home/me/.triton"), WARNING, "is not a directory"),
    ("host-caches", "network", _mount("/home/me/.cache", "lustre", "rw"), NOTE, "lies on lustre"),
    ("host-caches", "noexec", _mount("/home", "ext4", "rw,noexec"), WARNING, "is mounted noexec"),
    ("host-caches", "full", _space("/home/me/.cache", 1), WARNING, "is full"),
    ("host-caches", "no-home", _env(HOME=""), WARNING, "HOME is not set"),
    (
        "host-memory",
        "jobs",
        _env(MAX_JOBS="64"),
        WARNING,
        "MAX_JOBS=64 compilers of 4.0 GiB need 256.0 GiB, 48.0 GiB are free",
    ),
    ("host-memory", "not-a-number", _env(MAX_JOBS="all"), WARNING, "is not a number"),
    (
        "host-memory",
        "little",
        lambda m: m.put("/proc/meminfo", "MemAvailable: 3145728 kB\n"),
        WARNING,
        "3.0 GiB of memory",
    ),
    (
        "host-memory",
        "none",
        lambda m: m.put("/proc/meminfo", "MemAvailable: 524288 kB\n"),
        ERROR,
        "0.5 GiB of memory",
    ),
    (
        "host-memory",
        "control-group",
        lambda m: (
            m.put("/proc/self/cgroup", "0::/\n")
            .put("/sys/fs/cgroup/memory.max", "2147483648")
            .put("/sys/fs/cgroup/memory.current", "0")
        ),
        WARNING,
        "2.0 GiB of memory",
    ),
    ("host-shm", "docker", _space("/dev/shm", 64 << 20, 64 << 20), WARNING, "/dev/shm has 64 MiB"),
    ("host-shm", "none", lambda m: m.at("/dev/shm").rmdir(), WARNING, "there is no /dev/shm"),
    (
        "host-limits",
        "seccomp",
        lambda m: m.put("/proc/self/status", "CapEff:\t00000000a80425fb\nSeccomp:\t2\n"),
        NOTE,
        "a seccomp filter is active and CAP_SYS_NICE is missing",
    ),
    (
        "host-limits",
        "files",
        lambda m: m.put(
            "/proc/self/limits", "Max open files            1024                 4096                 files\n"
        ),
        WARNING,
        "may open 1024 files",
    ),
    (
        "host-limits",
        "rdma",
        lambda m: m.put("/dev/infiniband/uverbs0").put(
            "/proc/self/limits", "Max locked memory         8388608              8388608              bytes\n"
        ),
        WARNING,
        "8192 KiB",
    ),
    ("host-libc", "old-glibc", _old_glibc, ERROR, "glibc is 2.17; torch needs 2.28"),
    (
        "host-libc",
        "older-glibc",
        lambda m: library(m, f"{LIBRARIES}/libc.so.6", "GLIBC_2.31"),
        WARNING,
        "glibc is 2.31; one module of sglang needs 2.34",
    ),
    (
        "host-libc",
        "older-copy-first",
        _all(
            lambda m: library(m, "/opt/conda/lib/libstdc++.so.6", "GLIBCXX_3.4.25"),
            _env(LD_LIBRARY_PATH="/opt/conda/lib"),
        ),
        WARNING,
        "is loaded instead of the newer",
    ),
    (
        "host-libc",
        "old-cxx",
        lambda m: library(m, f"{LIBRARIES}/libstdc++.so.6", "GLIBCXX_3.4.19"),
        ERROR,
        "goes up to GLIBCXX_3.4.19",
    ),
    (
        "host-libc",
        "no-cxx",
        lambda m: m.at(f"{LIBRARIES}/libstdc++.so.6").unlink(),
        ERROR,
        "finds no libstdc++.so.6",
    ),
    (
        "host-libc",
        "musl",
        lambda m: (m.at(f"{LIBRARIES}/libc.so.6").unlink(), m.put("/lib/ld-musl-x86_64.so.1")),
        ERROR,
        "this system uses musl",
    ),
    ("host-libc", "unreadable", lambda m: m.put(f"{LIBRARIES}/libc.so.6", "text"), UNKNOWN, "cannot be read"),
    ("host-compiler", "none", lambda m: m.at("/usr/bin/c++").unlink(), ERROR, "there is no C++ compiler"),
    (
        "host-compiler",
        "too-new",
        lambda m: m.program("/usr/bin/g++-14", "g++ (GCC) 17.1.0 20280101"),
        ERROR,
        "is gcc 17.1; nvcc of CUDA 13.2 accepts up to gcc 15",
    ),
    (
        "host-compiler",
        "silent",
        lambda m: m.program("/usr/bin/g++-14", "hello"),
        UNKNOWN,
        "does not tell its version",
    ),
    ("host-compiler", "cxx-gone", _env(CXX="g++-99"), WARNING, "CXX=g++-99 is not there"),
    ("host-compiler", "cc-gone", _env(CC="gcc-99"), ERROR, "CC=gcc-99 is not there"),
    (
        "host-compiler",
        "cc-too-new",
        _all(_env(CC="gcc-17"), lambda m: m.program("/usr/bin/gcc-17", "gcc-17 (Debian) 17.1.0")),
        ERROR,
        "/usr/bin/gcc-17 is gcc 17.1",
    ),
    (
        "host-compiler",
        "conda",
        _all(
            _env(CONDA_PREFIX="/opt/conda", PATH="/opt/conda/bin"),
            lambda m: m.program("/opt/conda/bin/c++", "c++ (conda-forge gcc 13.3.0-1) 13.3.0"),
        ),
        WARNING,
        "is conda's",
    ),
]


@pytest.mark.parametrize(
    ("name", "change", "severity", "says"),
    [(name, change, severity, says) for name, _, change, severity, says in CASES],
    ids=[f"{name}-{case}" for name, case, *_ in CASES],
)
def test_it_speaks(
    tmp_path: Path, profile: Profile, name: str, change: Change, severity: Severity, says: str
) -> None:
    machine = healthy(tmp_path)
    change(machine)
    found = findings(machine, name, profile)
    assert [f for f in found if f.severity is severity and says in f.message], found
    assert all(f.code == name and f.fix for f in found if f.severity in (ERROR, WARNING))


@pytest.mark.parametrize("row", CHECKS.all(), ids=lambda row: row.code)
def test_it_is_silent_on_a_healthy_machine(tmp_path: Path, profile: Profile, row: object) -> None:
    machine = healthy(tmp_path)
    machine.driver("595.45.04")
    _libcuda(f"{LIBRARIES}/libcuda.so.595.45.04")(machine)
    machine.link(f"{LIBRARIES}/libcuda.so.1", "libcuda.so.595.45.04")
    name = row.code  # type: ignore[attr-defined]
    assert worse(findings(machine, name, profile)) == []
    assert worse(findings(machine, name)) == []


def test_every_check_has_a_case_in_which_it_speaks() -> None:
    elsewhere = {"host-python", "host-tools"}
    assert {name for name, *_ in CASES} | elsewhere == {row.code for row in CHECKS.all()}


def test_python_without_headers(tmp_path: Path, profile: Profile) -> None:
    machine = healthy(tmp_path)
    machine.python = ChosenPython(
        version="3.12.4",
        implementation="cpython",
        machine="x86_64",
        path=Path("/usr/bin/python3.12"),
        headers=False,
    )
    (found,) = findings(machine, "host-python", profile)
    assert render_finding(found) == (
        "error[host-python]: Python 3.12.4 at /usr/bin/python3.12 has no Python.h: triton and torch extensions cannot be "
        "compiled\n"
        "  seen as: fatal error: Python.h: No such file or directory\n"
        "  fix: apt-get install python3.12-dev (RHEL: python3.12-devel), or uv python install 3.12\n"
        "  more: envspec explain host-python"
    )


def test_no_python_is_unknown_with_the_errors_own_words(tmp_path: Path, profile: Profile) -> None:
    machine = healthy(tmp_path)
    machine.python = None
    (found,) = findings(machine, "host-python", profile)
    assert (found.severity, found.message) == (UNKNOWN, "not decided: no Python was found (no-python)")


def test_ninja_and_git(tmp_path: Path, local_profile: Callable[..., Profile]) -> None:
    machine = healthy(tmp_path / "host")
    machine.at("/usr/bin/ninja").unlink()
    machine.at("/usr/bin/git").unlink()
    without = local_profile('torch = "==2.11.0"', '[resolve]\nallow-sdists = ["torch"]\n')
    assert [f.subject for f in findings(machine, "host-tools", without)] == ["ninja", "git"]
    assert findings(machine, "host-tools", local_profile('ninja = "*"')) == []


def test_the_whole_text_of_a_driver_that_is_too_old(tmp_path: Path, profile: Profile) -> None:
    (found,) = findings(healthy(tmp_path).driver("570.86.10"), "host-driver", profile)
    assert render_finding(found) == (
        "error[host-driver]: driver 570.86.10 is older than 580.65.06, the minimum of the profile (gpu.minimum-driver)\n"
        "  /proc/driver/nvidia/version: 570.86.10, which brings CUDA 12.8\n"
        "  fix: install driver 580.65.06 or newer on the host (a container uses the host's)\n"
        "  more: envspec explain host-driver"
    )


def test_the_whole_text_of_a_leading_colon(tmp_path: Path) -> None:
    (found,) = findings(healthy(tmp_path, LD_LIBRARY_PATH=":/opt/lib"), "env-lists")
    assert render_finding(found) == (
        "warning[env-lists]: LD_LIBRARY_PATH begins with an empty element: the current directory is searched, whatever "
        "lies in it\n"
        "  LD_LIBRARY_PATH=:/opt/lib\n"
        '  fix: write "${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/new/directory" where it is extended; sglang_env.sh cleans PATH, '
        "LD_LIBRARY_PATH and LIBRARY_PATH\n"
        "  more: envspec explain env-lists"
    )


def test_a_newer_toolkit_on_an_older_driver_of_its_major_is_a_note(tmp_path: Path, profile: Profile) -> None:
    (found,) = findings(healthy(tmp_path).driver("580.95.05"), "host-driver", profile)
    assert found.severity is NOTE
    assert found.message == (
        "driver 580.95.05, which brings CUDA 13.0, runs what CUDA 13.2 compiles for this GPU, but not its PTX"
    )


def test_the_environment_of_envspec_itself_is_not_another_toolkit(tmp_path: Path) -> None:
    home = "/srv/out/.envspec/toolchains/0123456789abcdef"
    machine = healthy(tmp_path, CUDA_HOME=home, CUDA_PATH=home, PATH=f"{home}/bin:/usr/bin")
    machine.program(f"{home}/bin/nvcc")
    assert findings(machine, "env-cuda") == findings(machine, "env-nvcc") == []
