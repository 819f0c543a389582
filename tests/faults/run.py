"""`make faults`: hundreds of faults, and what became of the environment that was there before.

    python -m tests.faults.run [--seed N]

Needs root, for small file systems. Prints the faults by kind and stage, how many were survived, and what was lost, which must
be nothing. `make test-faults` is the short, deterministic part of it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.faults.harness import ERRNO, STAGES, Bench, spread
from tests.faults.scenes import (
    changing_wheel,
    dropping_network,
    full_disks,
    jumping_clock,
    read_only_disk,
    two_at_once,
    two_outputs_at_once,
)
from tests.support.command import ENVSPEC, environment

SCENES = (
    full_disks,
    read_only_disk,
    dropping_network,
    changing_wheel,
    jumping_clock,
    two_at_once,
    two_outputs_at_once,
)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kills", type=int, default=100)
    seed = parser.parse_args().seed
    kills = parser.parse_args().kills
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="envspec-faults-") as work:
        os.environ["ENVSPEC_CACHE_DIR"] = str(Path(work) / "envspec cache")
        root = Path(work) / "site, größer"
        root.mkdir()
        bench = Bench(root, seed)
        stages: dict[str, int] = {}
        _count(stages, kill_builds_by_time(bench, kills // 2))
        _count(stages, kill_builds_by_operation(bench, kills - kills // 2))
        print(
            "kills by stage: "
            + ", ".join(f"{name} {stages.get(name, 0)}" for name in (*STAGES, "after publish"))
        )
        fail_operations(bench, 60)
        kill_other_commands(bench)
        for scene in SCENES:
            scene(bench)
    print(f"\nseed {seed}, {time.monotonic() - began:.0f} s")
    for what, number in bench.seen.items():
        print(f"  {number:4}  {what}")
    lost = sum("verify:" in p or "does not run" in p or "digest is neither" in p for p in bench.problems)
    print(f"faults injected {bench.injected}, survived {bench.survived}, data lost {lost}")
    for problem in bench.problems:
        print(f"  {problem}")
    return 1 if bench.problems else 0


def _count(stages: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        stages[name] = stages.get(name, 0) + 1


def kill_builds_by_time(bench: Bench, count: int) -> Iterable[str]:
    """SIGKILL some time after each stage's line, up to as long as the next stage takes."""
    lengths = stage_lengths(bench)
    for number in range(count):
        after = number % len(lengths)
        yield bench.kill_after(after, bench.random.uniform(0, lengths[after]))
        bench.check("killed at a random time")


def stage_lengths(bench: Bench) -> list[float]:
    """How long a build is in each stage, as seen from outside: the time before each line, the first from the start."""
    process = subprocess.Popen(
        bench.build_command(),
        cwd=bench.site.root,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    times = [time.monotonic(), *(time.monotonic() for _ in process.stderr)]
    process.wait()
    bench.turn += 1
    bench.site.gc("out")
    return [b - a for a, b in itertools.pairwise(times)]


def kill_builds_by_operation(bench: Bench, count: int) -> Iterable[str]:
    """SIGKILL at operations on files spread over the whole build: envspec alone, it and its children, the child alone."""
    total = len(bench.operations(bench.build_command()))
    bench.turn += 1
    bench.site.gc("out")
    for at, number in enumerate(spread(total, count)):
        who = ("main", "all", "self")[at % 3]
        yield bench.kill_at(number, who)
        bench.check(f"killed at a file operation ({who})")


def fail_operations(bench: Bench, count: int) -> None:
    """Errors of the file system, once and for good."""
    total = len(bench.operations(bench.build_command()))
    bench.turn += 1
    bench.site.gc("out")
    names = list(ERRNO)
    for at, number in enumerate(spread(total, count)):
        error, sticky = names[at % len(names)], at % 2 == 0
        bench.fail_at(number, error, sticky)
        bench.check(f"{error} {'from then on' if sticky else 'once'}")


def kill_other_commands(bench: Bench, each: int = 16) -> None:
    """rollback, gc, repair and upgrade, killed at each of some operations."""
    site = bench.site
    for name, args in (
        ("rollback", ["rollback", "--out", "out"]),
        ("gc", ["gc", "--keep", "0", "--out", "out"]),
        ("repair", ["repair", "--profile", "odd.toml", "--out", "out"]),
    ):
        total = _prepared(bench, name, args)
        for number in spread(total, each):
            _prepared(bench, name, None)
            bench.kill_command(args, number)
            if name == "repair":
                done = site.call(*args)
                if done.code != 0:
                    bench.problems.append(f"repair after a killed repair: {done.err}")
            if name == "rollback":
                _settle(bench)
            bench.check(f"{name} killed")


def _prepared(bench: Bench, name: str, count: list[str] | None) -> int:
    """Bring the output into the state that a command starts from; with `count`, run it and count its operations."""
    if name in ("rollback", "gc"):
        bench.site.made("out", f"{bench.new}.toml")
        bench.turn += 1
    if name == "repair":
        (site_packages,) = (bench.out / "venv").resolve().glob("lib/python3*/site-packages")
        shutil.rmtree(site_packages / "app")
        (site_packages / "lib" / "old.py").write_text("changed = 1\n")
        (bench.out / "current" / "sglang_env.sh").unlink()
        ((bench.out / "cuda").resolve() / "include" / "cuda.h").unlink()
    if count is None:
        return 0
    total = len(bench.operations([*ENVSPEC, *count]))
    if name == "rollback":
        _settle(bench)
    return total


def _settle(bench: Bench) -> None:
    """After a rollback that did or did not happen: the turn that fits what is current."""
    bench.turn += bench.site.digest("out") != bench.digests[bench.old]


if __name__ == "__main__":
    sys.exit(main())
