"""What it costs to look whether an environment has drifted, beside what uv can tell.

    python benchmarks/verify.py [OUT]

OUT is an output of the first profile (71,000 files, 9 GB). The peers answer less: `uv pip check` reads metadata, `uv pip sync
--dry-run` compares versions; neither looks at a file. The last peer reads every byte as `--hash` does: `cksum`-like, by cat.
All in one run, best of three, after one run that fills the page cache as far as it goes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from envspec.output.manifest import read_manifest
from envspec.uv.run import find_uv


def main() -> int:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out").resolve()
    manifest = read_manifest(out / "envspec.json")
    python = str(out / "venv" / "bin" / "python")
    size = sum(row.size for row in manifest.files)
    print(f"{len(manifest.files)} files, {size / 1e9:.1f} GB")
    with tempfile.TemporaryDirectory() as work:
        requirements = Path(work) / "requirements.txt"
        requirements.write_text("".join(f"{p.name}=={p.version}\n" for p in manifest.packages))
        envspec = [sys.executable, "-m", "envspec", "verify", "--out", str(out)]
        uv = [str(find_uv()), "pip"]
        commands: dict[str, list[str]] = {
            "envspec verify": envspec,
            "envspec verify --hash": [*envspec, "--hash"],
            "uv pip check": [*uv, "check", "--python", python],
            "uv pip sync --dry-run": [*uv, "sync", "--dry-run", "--python", python, str(requirements)],
            "reading every file (cat)": ["sh", "-c", 'find "$1" -type f -print0 | xargs -0 cat >/dev/null', "sh",
                                         str((out / "venv").resolve())],
        }  # fmt: skip
        times = {name: best(command) for name, command in commands.items()}
    first = times["envspec verify"]
    for name, took in times.items():
        print(f"  {took:7.2f} s  {took / first:6.1f} x  {name}")
    print(f"verify by stat: goal under 1 s: {'met' if first < 1 else 'MISSED'}")
    hashed = times["envspec verify --hash"]
    print(
        f"verify --hash: {size / hashed / 1e9:.2f} GB/s, {hashed / times['reading every file (cat)']:.1f} x of only reading"
    )
    return 0 if first < 1 else 1


def best(command: list[str]) -> float:
    """Of three, after one that warms up."""
    times = []
    for _ in range(4):
        began = time.perf_counter()
        subprocess.run(command, check=False, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times[1:])


if __name__ == "__main__":
    sys.exit(main())
