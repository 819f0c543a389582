"""How long `envspec diagnose` takes: a log of a gigabyte, one where every line looks suspicious, and one of 10 KB.

usage: python benchmarks/diagnose_log.py [MEGABYTES]

The logs are written to a temporary directory and deleted afterwards. Each figure is the whole process, with its peak
memory, and as a ratio to `grep -c -i error` on the same file in the same run, because machines differ.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
FAILURE = (HERE / "tests/corpus/cases/sglang-cuda_fp8-header-missing-capture.txt").read_bytes()
EVIDENCE = b"fatal error: cuda_fp8.h"


def serving() -> bytes:
    """About 30 MB of a server at work."""
    lines = []
    for i in range(200_000):
        kind = i % 50
        if kind < 25:
            lines.append(
                f"[2026-05-22 15:{i // 60 % 60:02d}:{i % 60:02d} TP{i % 8}] Decode batch. #running-req: {i % 97}, #token: "
                f"{i * 7 % 99999}, "
                f"token usage: 0.{i % 99:02d}, cuda graph: True, gen throughput (token/s): {i % 3000}.{i % 99:02d}, #queue-req: 0, "
            )
        elif kind < 35:
            lines.append(
                f"(EngineCore_DP0 pid=4101) INFO 06-02 17:20:{i % 60:02d} [loggers.py:123] Engine 000: Avg prompt "
                f"throughput: {i % 888}.0 "
                f"tokens/s, Running: {i % 9} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.{i % 9}%"
            )
        else:
            lines.append(
                f'INFO:     10.0.0.{i % 250}:{i % 60000} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
            )
    return ("\n".join(lines) + "\n").encode()


def suspicious() -> bytes:
    """About 30 MB in which every line has a word of failure and no two are alike but for digits."""
    words = ("request", "session", "tensor", "socket", "shard", "block")
    lines = []
    for i in range(330_000):
        name = f"{words[i % 6]} {chr(97 + i % 26)}{chr(97 + i // 26 % 26)}"
        moment = f"2026-05-22 15:{i // 60 % 60:02d}:{i % 60:02d} TP{i % 8}"
        lines.append(f"[{moment}] WARNING {name} failed, retrying: error: attempt {i} of {i % 7}\n")
    return "".join(lines).encode()


def write(path: Path, pieces: Iterator[bytes]) -> None:
    """Write a log."""
    with path.open("wb") as log:
        for piece in pieces:
            log.write(piece)


def around(block: bytes, size: int) -> Iterator[bytes]:
    """A failure in the middle of many copies of a block."""
    copies = max(2, size // len(block))
    for i in range(copies):
        yield block
        if i == copies // 2:
            yield FAILURE


MEASURE = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:]); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
)


def measured(command: list[str]) -> tuple[float, float, bytes]:
    """Seconds, peak memory in MB and output of a process.

    The peak is taken by a small process in between: a child's peak begins with that of the process it is forked from.
    """
    start = time.perf_counter()
    output = subprocess.run(command, capture_output=True, cwd=HERE, check=False).stdout
    seconds = time.perf_counter() - start
    again = subprocess.run(
        [sys.executable, "-c", MEASURE, *command], capture_output=True, cwd=HERE, check=False
    )
    return seconds, int(again.stderr.split()[-1]) / 1024, output


def report(name: str, path: Path, expected: bytes) -> None:
    """One line of the result."""
    grep = min(measured(["grep", "-c", "-i", "error", str(path)])[0] for _ in range(3))
    runs = [measured([sys.executable, "-m", "envspec", "diagnose", str(path), "--json"]) for _ in range(3)]
    seconds, memory, output = min(runs)
    found = "found" if expected in output else "NOT FOUND"
    print(
        f"{name:28} {path.stat().st_size / 1e6:8.2f} MB  {seconds:6.2f} s  {memory:5.0f} MB peak  "
        f"{seconds / grep:7.1f} x grep ({grep:.3f} s)  cause {found}"
    )


def main() -> None:
    """Make the logs, measure, delete."""
    size = int(sys.argv[1]) * 1_000_000 if len(sys.argv) > 1 else 1_000_000_000
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "server.log"
        write(path, around(serving(), size))
        report("a server at work", path, EVIDENCE)
        write(path, around(suspicious(), size))
        report("every line suspicious", path, EVIDENCE)
        write(path, iter([serving()[:6000], FAILURE]))
        report("10 KB", path, EVIDENCE)


if __name__ == "__main__":
    main()
