"""Time the audit of a built environment beside the tools that answer parts of it.

    python benchmarks/audit.py [OUT]

Closure: envspec, `ldd -r` on every file, and pyelftools reading the names of a sample (scaled up). GPU code: envspec and
cuobjdump on every library that has some. Everything is read once before, so that times are from the page cache; envspec's
are the best and the median of several runs. The others run once. CPU seconds stand beside wall seconds, since the others take
minutes on a machine that may do something else meanwhile.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from envspec.audit.binaries import read_binaries
from envspec.audit.environment import Environment, of_manifest
from envspec.audit.gpu_findings import read_gpu_inventory
from envspec.audit.run import link_all
from envspec.output.directory import existing
from envspec.output.manifest import read_manifest

RUNS = 7
SAMPLE = 25


def main() -> int:
    """Measure and print."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    generation = existing(out).current()
    if generation is None:
        print(f"{out} holds no environment")
        return 2
    environment = of_manifest(generation, read_manifest(generation.manifest))
    venv = read_binaries(environment.venv)
    paths = [Path(binary.path) for binary in venv.binaries]
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(venv.names):,} files, {len(paths)} ELF files of {size / 1e9:.1f} GB; {os.cpu_count()} CPUs")

    closure = repeated(lambda: link_all(environment, read_binaries(environment.venv)))
    show("closure", "envspec", *closure)
    show("closure", "ldd -r", *once(lambda: ldd(environment, paths)), beside=closure)
    taken = once(lambda: read_names(paths[:: max(1, len(paths) // SAMPLE)]))
    factor = size_of_sample(paths)
    show("closure", "pyelftools, scaled", taken[0] * factor, taken[1] * factor, beside=closure)

    gpu = repeated(lambda: read_gpu_inventory(venv, environment.site_packages))
    show("GPU code", "envspec", *gpu)
    code = read_gpu_inventory(venv, environment.site_packages)
    files = [environment.venv / file.name for file in code.files if ".so" in file.name]
    tool = environment.site / "triton/backends/nvidia/bin/cuobjdump"
    show("GPU code", "cuobjdump", *once(lambda: cuobjdump(tool, files)), beside=gpu)
    return 0


def repeated(run: Callable[[], object]) -> tuple[float, float]:
    """The best wall and CPU seconds of several runs."""
    rows = [once(run) for _ in range(RUNS)]
    print(f"  {RUNS} runs, wall seconds: median {statistics.median(wall for wall, _ in rows):.3f}")
    return min(wall for wall, _ in rows), min(cpu for _, cpu in rows)


def once(run: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds, children included, of one run."""
    wall, before = time.perf_counter(), os.times()
    run()
    after = os.times()
    return time.perf_counter() - wall, sum(after[:4]) - sum(before[:4])


def show(what: str, who: str, wall: float, cpu: float, beside: tuple[float, float] | None = None) -> None:
    """One line, with the ratio to what was measured before."""
    ratio = (
        f"  {wall / beside[0]:6.0f} times the wall, {cpu / beside[1]:6.0f} times the CPU time"
        if beside
        else ""
    )
    print(f"{what:<9} {who:<20} {wall:9.3f} s wall {cpu:9.3f} s CPU{ratio}", flush=True)


def ldd(environment: Environment, paths: list[Path]) -> None:
    """`ldd -r` on every file, with the environment's LD_LIBRARY_PATH."""
    variables = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.pathsep.join(environment.library_path)}
    for path in paths:
        subprocess.run(["ldd", "-r", str(path)], env=variables, capture_output=True)


def read_names(paths: list[Path]) -> None:
    """Needed files and dynamic symbols of each file, as pyelftools reads them."""
    for path in paths:
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            section = elf.get_section_by_name(".dynsym")
            if isinstance(section, SymbolTableSection):
                for symbol in section.iter_symbols():
                    symbol.name  # noqa: B018 - it is read when asked


def size_of_sample(paths: list[Path]) -> float:
    """How many times more symbols all files have than the sample."""
    from envspec.elf import read

    counts = [len(read(path).symbols) for path in paths]
    return sum(counts) / sum(counts[:: max(1, len(paths) // SAMPLE)])


def cuobjdump(tool: Path, files: list[Path]) -> None:
    """Both lists of every file."""
    for path in files:
        for kind in ("elf", "ptx"):
            subprocess.run([str(tool), f"--list-{kind}", str(path)], capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
