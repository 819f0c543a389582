"""How many compile jobs this machine carries: processors, and the memory that is free to use.

The environment script computes the same in shell when it is sourced; a test holds the two together. All the
files are optional, and what they hold is trusted no further than being a number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec


class HostFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Says where the kernel tells about memory. Tests put other trees in their place."""

    meminfo: str = "/proc/meminfo"
    own_cgroup: str = "/proc/self/cgroup"
    cgroup2: str = "/sys/fs/cgroup"
    cgroup1_memory: str = "/sys/fs/cgroup/memory"


MAX_DIGITS = 15
"""Longer numbers would not fit into shell arithmetic once multiplied; kernels write them for "no limit"."""


def max_jobs(memory_per_job: int, host: HostFiles | None = None, *, headroom: int = 0) -> int:
    """Return the number of jobs: at least 1, no more than the processors of this process, nor than fit into the free memory."""
    jobs = len(os.sched_getaffinity(0))
    free = available_memory(host or HostFiles())
    if free is not None:
        jobs = min(jobs, (free - headroom) // memory_per_job)
    return max(jobs, 1)


def available_memory(host: HostFiles) -> int | None:
    """Return how many bytes a process may still take: of the machine, and of each control group it is in."""
    return min((*_machine(host), *_control_groups(host)), default=None)


def _machine(host: HostFiles) -> Iterator[int]:
    kilobytes = _field(host.meminfo, "MemAvailable:")
    if kilobytes is not None:
        yield kilobytes * 1024


def _control_groups(host: HostFiles) -> Iterator[int]:
    for line in _lines(host.own_cgroup):
        if line.startswith("0::/"):
            root, path, files = host.cgroup2, line[3:], ("memory.max", "memory.current", "inactive_file")
        elif line.partition(":")[2].startswith("memory:/"):
            root, path = host.cgroup1_memory, line.partition(":")[2][len("memory:") :]
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # A limit of any ancestor binds too. Outside of the namespace (..) there is nothing to read.
        inside = PurePosixPath("/") if ".." in path.split("/") else PurePosixPath(path)
        for group in (inside, *inside.parents):
            yield from _group(root + str(group).rstrip("/"), *files)


def _group(directory: str, limit_file: str, usage_file: str, cache_field: str) -> Iterator[int]:
    limit = _number(_first_word(f"{directory}/{limit_file}"))
    usage = _number(_first_word(f"{directory}/{usage_file}"))
    if limit is None or usage is None:
        return
    # The kernel counts the page cache as used. After gigabytes of wheels were unpacked a container looks
    # full, but what has not been read for a while is given back on demand.
    cache = _field(f"{directory}/memory.stat", cache_field) or 0
    yield max(limit - max(usage - cache, 0), 0)


def _field(file: str, name: str) -> int | None:
    """Return the number behind a name, as the shell's `read` with IFS=' ' finds it: blanks separate, a tab does not."""
    for line in _lines(file):
        words = [word for word in line.split(" ") if word]
        if len(words) >= 2 and words[0] == name and (number := _number(words[1])) is not None:
            return number
    return None


def _first_word(file: str) -> str:
    return next(_lines(file), "").strip(" ").partition(" ")[0]


def _lines(file: str) -> Iterator[str]:
    try:
        yield from Path(file).read_text(errors="replace").split("\n")
    except OSError:
        return


def _number(text: str) -> int | None:
    plain = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
    return int(text) if plain and (text == "0" or text[0] != "0") else None
