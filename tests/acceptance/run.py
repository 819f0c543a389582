"""The acceptance run: builds the real profile, then compiles with every JIT that a server uses.

    python -m tests.acceptance.run [--out DIR] [NAME...]

Each probe (envspec/probe) runs in a shell that did nothing but source the environment script, with empty JIT caches of its
own, without a GPU. Then comes the contrast: the same set installed by plain `uv pip install` with a naive CUDA_HOME, in which every
one of them has to fail; a JIT that passes there would prove nothing here.
"""

from __future__ import annotations

import argparse
import io
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from envspec.diagnose import diagnose
from envspec.probe.rows import SCRIPTS, probe_rows
from envspec.uv.run import find_uv

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
PROFILE = REPOSITORY / "profiles" / "rtx-pro-6000.toml"
JITS = {row.name: row for row in probe_rows()}
BARE = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "out")
    parser.add_argument("--skip-contrast", action="store_true")
    parser.add_argument("names", nargs="*", default=["imports", *JITS])
    asked = parser.parse_args()
    envspec = [sys.executable, "-m", "envspec"]
    subprocess.run([*envspec, "build", str(PROFILE), "--out", str(asked.out)], check=True)
    again = subprocess.run(
        [*envspec, "build", str(PROFILE), "--out", str(asked.out)], check=True, capture_output=True, text=True
    )
    assert "nothing to do" in again.stdout, again.stdout + again.stderr
    results = [sourced(name, asked.out) for name in asked.names]
    if not asked.skip_contrast:
        results += contrast(asked.out)
    failed = results.count(False)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


def script_of(name: str) -> Path:
    """The probe's script; the imports are this run's own."""
    return SCRIPTS / JITS[name].script if name in JITS else HERE / f"{name}.py"


def sourced(name: str, out: Path) -> bool:
    """Run one script in a shell that only sourced the environment; True if it succeeded."""
    script = shlex.quote(str(out.resolve() / "sglang_env.sh"))
    jit = shlex.quote(str(script_of(name)))
    with tempfile.TemporaryDirectory(prefix="envspec-home-") as home:
        command = f". {script} && exec python {jit}"
        return report(
            name, "sourced", ["sh", "-euc", command], {**BARE, "HOME": home}, Path(home), expect=True
        )


def contrast(out: Path) -> list[bool]:
    """The same packages as an engineer would install them today: no overrides, no layout, CUDA_HOME at the wheel's files."""
    with tempfile.TemporaryDirectory(prefix="envspec-contrast-", dir=out.resolve().parent) as work:
        venv = Path(work) / "venv"
        python = (out / "venv" / "bin" / "python").resolve()
        uv = str(find_uv())
        install = [uv, "pip", "install", "--quiet", "--python", str(venv / "bin" / "python")]
        subprocess.run([uv, "venv", "--quiet", "--python", str(python), str(venv)], check=True)
        # The first profile's requirements, as its author would type them: the newest compiler of the 13.2 line.
        wanted = [
            "torch==2.11.0",
            "sglang==0.5.12.post1",
            "sglang-kernel==0.4.2.post2",
            "nvidia-cuda-nvcc==13.2.*",
        ]
        subprocess.run([*install, "--exclude-newer", "2026-05-25T00:00:00Z", *wanted], check=True)
        site = next((venv / "lib").glob("python3*/site-packages"))
        number = "12.0a"
        environment = {
            **BARE,
            "HOME": work,
            "CUDA_HOME": str(site / "nvidia" / "cu13"),
            "PATH": f"{site}/nvidia/cu13/bin:{BARE['PATH']}",
            "FLASHINFER_CUDA_ARCH_LIST": number,
            "TVM_FFI_CUDA_ARCH_LIST": number,
            "TORCH_CUDA_ARCH_LIST": number,
        }
        python_in_venv = str(venv / "bin" / "python")
        needs_toolkit = [row.name for row in JITS.values() if row.toolkit]
        return [
            report(
                name,
                "plain uv",
                [python_in_venv, str(script_of(name))],
                environment,
                Path(work),
                expect=False,
            )
            for name in needs_toolkit
        ]


def report(
    name: str, where: str, command: list[str], environment: dict[str, str], cwd: Path, *, expect: bool
) -> bool:
    """Run, print one line with the time, and the tail of the output where the outcome is not the expected one."""
    started = time.monotonic()
    done = subprocess.run(
        command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1500
    )
    text = done.stdout.decode("utf-8", "replace")
    outcome = "works" if done.returncode == 0 else f"fails: {first_error(text)}"
    good = (done.returncode == 0) == expect
    mark = "ok  " if good else "BAD "
    print(f"{mark} {where:<9} {name:<20} {time.monotonic() - started:6.1f} s  {outcome}", flush=True)
    if not good:
        print("\n".join(f"     | {line}" for line in text.splitlines()[-40:]), flush=True)
    return good


def first_error(text: str) -> str:
    """The line that a reader should look at first."""
    cause = diagnose(io.BytesIO(text.encode())).cause
    line = cause.text if cause else (text.strip().splitlines() or ["no output"])[-1]
    return re.sub(r"\S*/(?=\S)", "", line.strip())[:110]


if __name__ == "__main__":
    sys.exit(main())
