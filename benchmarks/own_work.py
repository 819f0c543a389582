"""What a build costs beyond uv and the compilers: envspec's own work, from a warm cache.

    python benchmarks/own_work.py [PROFILE]

Builds PROFILE (the first one by default) into a temporary output, once to warm the caches and three times for the figures, and
takes from each stage the time spent waiting for other programs. What is left is ours.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from envspec.build.pipeline import build
from envspec.build.plan import BuildRequest
from envspec.cli.progress import PlainProgress
from envspec.data.shipped import shipped
from envspec.fs import sync_file_system
from envspec.host.commands import Command, Completed, traced
from envspec.output import generations

_GOAL = 3.0


class Waiting:
    """Seconds spent in other programs, by their names, and in the kernel's sync."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def started(self, number: int, command: Command) -> None:
        """A command is about to be started."""

    def ended(self, number: int, command: Command, completed: Completed) -> None:
        """A command has ended: add its seconds."""
        self.add(Path(command.arguments[0]).name, completed.seconds)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds under a name."""
        self.seconds[name] = self.seconds.get(name, 0) + seconds


def main() -> int:
    profile = Path(sys.argv[1]) if len(sys.argv) > 1 else shipped("profiles") / "rtx-pro-6000.toml"
    waiting = Waiting()

    def timed_sync(path: Path) -> None:
        began = time.perf_counter()
        sync_file_system(path)
        waiting.add("sync", time.perf_counter() - began)

    vars(generations)["sync_file_system"] = timed_sync
    best = float("inf")
    for number in range(4):
        waiting.seconds.clear()
        with tempfile.TemporaryDirectory(prefix="envspec-own-work-", dir=Path.cwd()) as work:
            began = time.perf_counter()
            with traced(waiting):
                build(BuildRequest(profile=profile, out=Path(work) / "out"), PlainProgress())
            took = time.perf_counter() - began
            shutil.rmtree(work, ignore_errors=True)
        own = took - sum(waiting.seconds.values())
        others = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in waiting.seconds.items())
        print(f"build {took:.2f} s: {others}, own work {own:.2f} s", flush=True)
        if number:
            best = min(best, own)
    print(f"own work: {best:.2f} s, goal under {_GOAL:.0f} s: {'met' if best < _GOAL else 'MISSED'}")
    return 0 if best < _GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
