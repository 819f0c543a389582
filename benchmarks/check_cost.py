"""What a check costs: bytes over the network and seconds, with empty caches and with warm ones, for one profile.

    python benchmarks/check_cost.py [PROFILE]

Both uv's and envspec's caches are empty at first, in a temporary directory. All traffic goes through a counting proxy on
the loopback, TLS included. The peer is what an installer would have to fetch to learn the same: the wheels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.counting_proxy import counting_proxy
from envspec.data.shipped import shipped
from envspec.lock import read_lock
from envspec.lock.selection import select
from envspec.lock.targets import Target


def run(profile: Path, env: dict[str, str]) -> tuple[float, int]:
    """Seconds and received bytes of one check."""
    with counting_proxy() as (address, counter):
        proxied = {**env, "HTTPS_PROXY": address, "HTTP_PROXY": address, "ALL_PROXY": address}
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "envspec", "check", str(profile)],
            env=proxied,
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1):
            raise SystemExit(done.stderr)
        return time.monotonic() - started, counter.received


def main() -> None:
    profile = Path(sys.argv[1]) if len(sys.argv) > 1 else shipped("profiles") / "rtx-pro-6000.toml"
    lock = read_lock(profile.with_suffix(".lock"))
    assert lock is not None
    chosen = select(lock, Target("3.12", "x86_64"))
    wheels = sum(one.file.size for one in chosen.values() if one.file is not None)
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "UV_CACHE_DIR": f"{cache}/uv", "ENVSPEC_CACHE_DIR": f"{cache}/envspec"}
        cold = run(profile, env)
        warm = sorted(run(profile, env) for _ in range(5))[2]
    print(f"{len(chosen)} packages, wheels of {wheels / 1e6:.0f} MB")
    print(
        f"empty caches: {cold[0]:.1f} s, {cold[1] / 1e6:.1f} MB received (1/{wheels / max(cold[1], 1):.0f} of the wheels)"
    )
    print(f"warm caches:  {warm[0]:.2f} s, {warm[1] / 1e6:.2f} MB received")


if __name__ == "__main__":
    main()
