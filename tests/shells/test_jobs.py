"""MAX_JOBS: what the script counts and what Python counts, on machines made of files."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envspec.host.memory import HostFiles, available_memory, max_jobs
from tests.support.shells import VALUES, Output, Shell

CPUS = len(os.sched_getaffinity(0))
GIB = 1 << 30


def machine(root: Path, files: dict[str, str]) -> HostFiles:
    """A machine whose kernel says no more than these files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode(errors="surrogateescape"))
    return HostFiles(
        meminfo=f"{root}/meminfo",
        own_cgroup=f"{root}/cgroup",
        cgroup2=f"{root}/v2",
        cgroup1_memory=f"{root}/v1",
    )


MEMINFO = "MemTotal:       65536000 kB\nMemFree:         1000 kB\nMemAvailable:   8388608 kB\n"

CASES: dict[str, tuple[dict[str, str], int | None]] = {
    "nothing is known": ({}, None),
    "the machine": ({"meminfo": MEMINFO}, 8 * GIB),
    "no limit": (
        {"meminfo": MEMINFO, "cgroup": "0::/a\n", "v2/a/memory.max": "max\n", "v2/a/memory.current": "5\n"},
        8 * GIB,
    ),
    "a limit": (
        {
            "meminfo": MEMINFO,
            "cgroup": "0::/a\n",
            "v2/a/memory.max": f"{3 * GIB}\n",
            "v2/a/memory.current": f"{GIB}\n",
        },
        2 * GIB,
    ),
    "a limit of a group above": (
        {
            "cgroup": "0::/a/b c\n",
            "v2/a/memory.max": f"{GIB}\n",
            "v2/a/memory.current": "0\n",
            "v2/a/b c/memory.max": "max\n",
        },
        GIB,
    ),
    "a limit of a container": (
        {"cgroup": "0::/\n", "v2/memory.max": f"{GIB}\n", "v2/memory.current": "0\n"},
        GIB,
    ),
    "the page cache does not count": (
        {
            "cgroup": "0::/\n",
            "v2/memory.max": f"{4 * GIB}\n",
            "v2/memory.current": f"{4 * GIB}\n",
            "v2/memory.stat": f"anon 5\ninactive_file {3 * GIB}\nactive_file 7\n",
        },
        3 * GIB,
    ),
    "over the limit": (
        {"cgroup": "0::/\n", "v2/memory.max": "5\n", "v2/memory.current": "9\n"},
        0,
    ),
    "version 1": (
        {
            "cgroup": "12:cpu,cpuacct:/x\n4:memory:/docker/12\n",
            "v1/docker/12/memory.limit_in_bytes": "9223372036854771712\n",
            "v1/docker/12/memory.usage_in_bytes": "1\n",
            "v1/memory.limit_in_bytes": f"{2 * GIB}\n",
            "v1/memory.usage_in_bytes": f"{GIB}\n",
            "v1/memory.stat": f"inactive_file 9\ntotal_inactive_file {GIB}\n",
        },
        2 * GIB,
    ),
    "outside of the namespace": (
        {
            "cgroup": "0::/../../other\n",
            "v2/memory.max": "7\n",
            "v2/memory.current": "0\n",
            "other/memory.max": "1",
        },
        7,
    ),
    "not numbers": (
        {
            "meminfo": "MemAvailable: $(touch pwned) kB\nMemAvailable: 010 kB\n",
            "cgroup": "0::/$(touch pwned)\n0::/a[$(touch pwned)]\nnonsense\n",
            "v2/memory.max": "a[$(touch pwned)]\n",
            "v2/memory.current": "-5\n",
        },
        None,
    ),
    "numbers too long": ({"meminfo": f"MemAvailable: {'9' * 40} kB\n"}, None),
}


@pytest.mark.parametrize(("files", "free"), CASES.values(), ids=CASES.keys())
def test_free_memory(files: dict[str, str], free: int | None, tmp_path: Path) -> None:
    assert available_memory(machine(tmp_path, files)) == free


@pytest.mark.parametrize(("files", "free"), CASES.values(), ids=CASES.keys())
def test_the_script_counts_the_same(
    files: dict[str, str], free: int | None, shell: Shell, out: Output, tmp_path: Path
) -> None:
    host = machine(tmp_path / "it's a host", files)
    # So small a share a job that the memory would be the limit only where there is next to none.
    for share, headroom in ((1, 0), (GIB, 0), (3 * GIB, 0), (1, GIB), (1, 1 << 50)):
        values = msgspec.structs.replace(VALUES, memory_per_job=share, memory_headroom=headroom)
        out.write(1, values, host)
        wanted = max(1, CPUS if free is None else min(CPUS, max(free - headroom, 0) // share))
        assert max_jobs(share, host, headroom=headroom) == wanted
        said = shell.says('set -eu; . out/sglang_env.sh; printf %s "$MAX_JOBS"', cwd=tmp_path)
        assert said == str(wanted)
    assert not list(tmp_path.rglob("pwned"))


WORD = st.one_of(
    st.integers(0, 1 << 62).map(str),
    st.text(alphabet=st.sampled_from("0123456789 maxkB-+.$()`*\t\n"), max_size=24),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(available=WORD, limit=WORD, used=WORD, cache=WORD)
def test_any_file_gives_a_count(
    available: str,
    limit: str,
    used: str,
    cache: str,
    out: Output,
    tmp_path: Path,
    shell: Shell,
) -> None:
    files = {
        "meminfo": f"MemAvailable: {available}\n",
        "cgroup": "0::/a\n",
        "v2/a/memory.max": limit,
        "v2/a/memory.current": used,
        "v2/a/memory.stat": f"inactive_file {cache}\n",
    }
    host = machine(tmp_path / "host", files)
    out.write(1, msgspec.structs.replace(VALUES, memory_per_job=1 << 10), host)
    said = shell.says('set -eu; . out/sglang_env.sh; printf %s "$MAX_JOBS"', cwd=tmp_path)
    assert said == str(max_jobs(1 << 10, host))


def test_a_count_of_the_users_own_is_kept(shell: Shell, out: Output, tmp_path: Path) -> None:
    assert shell.exports(". out/sglang_env.sh", cwd=tmp_path, env={"MAX_JOBS": "77"})["MAX_JOBS"] == "77"
