"""Is it the same environment? Five builds of a real set in different circumstances, and the same set by plain `uv pip install`.

    python benchmarks/reproduce.py

The set holds nvidia-cutlass-dsl-libs-base and -libs-cu13, which own 179 paths together, 99 of them with different content,
and the CUDA 13.2.1 compiler with what it needs. It is about 0.7 GB unpacked; two of the five builds download it into a cache
of their own, which is removed afterwards. The peer installs the very lock that envspec made, with its hashes, as often.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from envspec.uv.run import find_uv

PROFILE = """\
[gpu]
arch = "12.0a"
[resolve]
exclude-newer = 2026-05-25
[cuda]
toolkit = "13.2.1"
components = ["nvcc", "crt", "nvvm", "cudart", "nvrtc", "cccl"]
[packages]
nvidia-cutlass-dsl = { version = "4.5.1", extras = ["cu13"] }
[install]
winners = ["nvidia-cutlass-dsl-libs-cu13"]
"""

RUNS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("warm cache, default threads", "a", {}),
    ("warm cache, 1 thread", "another place/with a longer name/b", {"UV_CONCURRENT_INSTALLS": "1"}),
    ("warm cache, 32 threads, copies", "c", {"UV_CONCURRENT_INSTALLS": "32", "UV_LINK_MODE": "copy"}),
    ("cold cache, 16 threads", "größer d", {"UV_CONCURRENT_INSTALLS": "16", "UV_CACHE_DIR": "cold 1"}),
    (
        "cold cache, 1 thread",
        "e",
        {"UV_CONCURRENT_INSTALLS": "1", "UV_CACHE_DIR": "cold 2", "TZ": "Asia/Tokyo"},
    ),
)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="envspec-reproduce-") as work:
        root = Path(work)
        (root / "set.toml").write_text(PROFILE, encoding="utf-8")
        print("envspec build")
        digests = [_built(root, *run) for run in RUNS]
        print("plain uv pip install of the same lock")
        trees = [_installed(root, *run) for run in RUNS]
    print(f"envspec: {len(RUNS)} builds, {len(set(digests))} digest{'s' if len(set(digests)) > 1 else ''}")
    print(
        f"uv pip install: {len(RUNS)} installs, {len(set(trees))} different tree{'s' if len(set(trees)) > 1 else ''}"
    )
    return 0 if len(set(digests)) == 1 else 1


def _env(root: Path, more: Mapping[str, str]) -> dict[str, str]:
    return {
        **os.environ,
        **more,
        **({"UV_CACHE_DIR": str(root / more["UV_CACHE_DIR"])} if "UV_CACHE_DIR" in more else {}),
    }


def _built(root: Path, what: str, place: str, more: Mapping[str, str]) -> str:
    out = root / place / "out"
    command = [sys.executable, "-m", "envspec"]
    began = time.monotonic()
    subprocess.run(
        [*command, "build", "set.toml", "--out", str(out)],
        cwd=root,
        env=_env(root, more),
        check=True,
        capture_output=True,
    )
    took = time.monotonic() - began
    done = subprocess.run(
        [*command, "digest", "--out", str(out)], cwd=root, check=True, capture_output=True, text=True
    )
    # What the digest stands for, counted apart from it: the bytes on disk.
    verified = subprocess.run(
        [*command, "verify", "--hash", "--out", str(out)], cwd=root, capture_output=True
    )
    held = "as in" if verified.returncode == 0 else "NOT AS IN"
    print(f"  {done.stdout.strip()[:23]}  {took:5.1f} s  {what}; files {held} the manifest")
    return done.stdout.strip() if verified.returncode == 0 else f"bad {what}"


def _installed(root: Path, what: str, place: str, more: Mapping[str, str]) -> str:
    venv = root / place / "plain"
    env = _env(
        root,
        {**more, **({"UV_CACHE_DIR": f"{more['UV_CACHE_DIR']} plain"} if "UV_CACHE_DIR" in more else {})},
    )
    subprocess.run(
        [find_uv(), "venv", "--python", sys.executable, str(venv)], env=env, check=True, capture_output=True
    )
    began = time.monotonic()
    subprocess.run(
        [find_uv(), "pip", "install", "--python", str(venv / "bin" / "python"), "--no-deps", "--require-hashes",
         "-r", "set.lock"],
        cwd=root, env=env, check=True, capture_output=True,
    )  # fmt: skip
    took = time.monotonic() - began
    digest = hashlib.sha256()
    (site,) = venv.glob("lib/python3*/site-packages")
    for path in sorted(p for p in site.rglob("*") if p.is_file()):
        if "__pycache__" not in path.parts and not path.parent.name.endswith(".dist-info"):
            digest.update(
                path.relative_to(site).as_posix().encode()
                + b"\0"
                + hashlib.sha256(path.read_bytes()).digest()
            )
    print(f"  tree {digest.hexdigest()[:18]}  {took:5.1f} s  {what}")
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
