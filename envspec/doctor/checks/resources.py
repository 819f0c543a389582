"""Memory, and what a container takes away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envspec.doctor.checks import CHECKS, Wanted
from envspec.doctor.checks.storage import gib
from envspec.host.machine import Host
from envspec.report.findings import Finding, error, note, warning

_GIB = 1 << 30
_MEMORY_PER_JOB = 4 * _GIB
_SMALLEST_SHM = _GIB
_FEWEST_FILES = 4096
_CAP_SYS_NICE = 23


@CHECKS.rule("The free memory carries as many compilers as MAX_JOBS starts.")
def host_memory(host: Host, wanted: Wanted) -> Iterator[Finding]:
    each = wanted.profile.memory_per_job if wanted.profile is not None else _MEMORY_PER_JOB
    free = host.available_memory()
    if free is not None and wanted.profile is not None:
        free = max(free - wanted.profile.memory_headroom, 0)
    given = host.environ.get("MAX_JOBS", "")
    if given and not (given.isascii() and given.isdigit() and int(given) > 0):
        yield warning(
            "host-memory", "MAX_JOBS", f"MAX_JOBS={given} is not a number of jobs, and the environment keeps it",
            fix="unset MAX_JOBS",
        )  # fmt: skip
        return
    if free is None:
        return
    if given and int(given) > 1 and int(given) * each > free:
        yield warning(
            "host-memory",
            "MAX_JOBS",
            f"MAX_JOBS={given} compilers of {gib(each)} need {gib(int(given) * each)}, {gib(free)} are free",
            evidence=["seen as: nvcc error: 'cicc' died due to signal 9 (Kill signal)"],
            fix=f"unset MAX_JOBS, or set it to {max(1, free // each)}",
        )
    elif free < each:
        yield (error if free < each // 4 else warning)(
            "host-memory",
            "memory",
            f"{gib(free)} of memory are free, one compiler may need {gib(each)} (jobs.memory-per-job)",
            evidence=["seen as: nvcc error: 'cicc' died due to signal 9 (Kill signal)"],
            fix="free memory, or raise the container's limit",
        )
    elif not given:
        jobs = max(1, min(host.processors(), free // each))
        yield note(
            "host-memory",
            "MAX_JOBS",
            f"MAX_JOBS will be {jobs}: {host.processors()} processors, {gib(free)} free",
        )


@CHECKS.rule("/dev/shm is large enough for the processes of one server.")
def host_shm(host: Host, wanted: Wanted) -> Iterator[Finding]:
    space = host.space("/dev/shm") if host.is_dir("/dev/shm") else None
    if space is None:
        yield warning(
            "host-shm", "/dev/shm", "there is no /dev/shm: NCCL and worker processes share memory through it",
            fix="mount a tmpfs there; docker: --shm-size 16g or --ipc=host",
        )  # fmt: skip
    elif space.total < _SMALLEST_SHM:
        yield warning(
            "host-shm",
            "/dev/shm",
            f"/dev/shm has {space.total >> 20} MiB: servers with several GPUs or workers end in a bus error",
            evidence=["docker's default is 64 MiB"],
            fix="start the container with --shm-size 16g, or --ipc=host",
        )


@CHECKS.rule("Neither a seccomp filter nor a resource limit takes away what servers use.")
def host_limits(host: Host, wanted: Wanted) -> Iterator[Finding]:
    status = host.text("/proc/self/status") or ""
    seccomp = re.search(r"^Seccomp:\s*(\d)", status, re.MULTILINE)
    capabilities = re.search(r"^CapEff:\s*([0-9a-fA-F]{1,16})$", status, re.MULTILINE)
    nice = capabilities is not None and bool(int(capabilities[1], 16) >> _CAP_SYS_NICE & 1)
    if seccomp and seccomp[1] != "0" and not nice:
        yield note(
            "host-limits",
            "seccomp",
            "a seccomp filter is active and CAP_SYS_NICE is missing: binding memory to NUMA nodes is refused",
            evidence=[
                "/proc/self/status",
                "seen as: set_mempolicy or mbind: Operation not permitted; it is slower, not wrong",
            ],
            fix="start the container with --cap-add SYS_NICE, or --security-opt seccomp=unconfined",
        )
    files = _limit(host, "Max open files")
    if files is not None and files < _FEWEST_FILES:
        yield warning(
            "host-limits",
            "open files",
            f"a process may open {files} files; a server with many connections and shards needs more",
            evidence=["seen as: OSError: [Errno 24] Too many open files"],
            fix="ulimit -n 65536; docker: --ulimit nofile=65536",
        )
    locked = _limit(host, "Max locked memory")
    if locked is not None and host.names("/dev/infiniband"):
        yield warning(
            "host-limits",
            "locked memory",
            f"there is InfiniBand, and a process may lock {locked >> 10} KiB only: RDMA cannot register memory",
            fix="ulimit -l unlimited; docker: --ulimit memlock=-1",
        )


def _limit(host: Host, name: str) -> int | None:
    """The soft limit, or None if it is unlimited or not told."""
    found = re.search(rf"^{name}\s+(\d{{1,18}})\s", host.text("/proc/self/limits") or "", re.MULTILINE)
    return int(found[1]) if found else None
