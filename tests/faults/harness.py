"""Makes moments go wrong and looks at what is left: the tools of `make faults` and of the short run, `make test-faults`.

One output is built again and again, from two profiles in turn. Into each build a fault is put; after it the environment that
was there before must still run and be whole, the next build must succeed with the digest that this profile always
gives, and nothing may lie in the output that does not belong there.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.command import ENVSPEC, environment
from tests.support.site import PACKAGES, STATE_NAMES, WINNERS, TrustSite

OUT_NAMES = {".envspec", "cuda", "current", "envspec.json", "sglang_env.sh", "venv"}
ERRNO = {"EIO": 5, "ENOSPC": 28, "EROFS": 30, "EDQUOT": 122}


class Ended(NamedTuple):
    """How a command ended that something was done to."""

    code: int
    err: str
    struck: bool


class Bench:
    """A site, an output with a finished environment, and the faults."""

    def __init__(self, root: Path, seed: int = 1) -> None:
        self.site = TrustSite(root)
        self.random = random.Random(seed)
        self.site.profile("even", PACKAGES, WINNERS)
        self.site.profile(
            "odd", PACKAGES.replace('app = "1.0"', 'app = "2.0"').replace('tool = "1.0"\n', ""), WINNERS
        )
        self.shim = root.parent / "shim.so"  # LD_PRELOAD is split at blanks, and root has some
        source = Path(__file__).with_name("shim.c")
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", str(self.shim), str(source), "-ldl"], check=True
        )
        self.turn = 0
        self.digests = {}
        for name in ("even", "odd"):
            self.site.made(f"reference {name}", f"{name}.toml")
            self.digests[name] = self.site.digest(f"reference {name}")
        self.out = self.site.made("out", "even.toml")
        self.injected = 0
        self.survived = 0
        self.problems: list[str] = []
        self.seen: dict[str, int] = {}

    # ---- running

    @property
    def old(self) -> str:
        """The profile that is current."""
        return ("even", "odd")[self.turn % 2]

    @property
    def new(self) -> str:
        """The profile that is built next."""
        return ("odd", "even")[self.turn % 2]

    def build_command(self, profile: str | None = None, out: str = "out") -> list[str]:
        return [*ENVSPEC, "build", "--python", sys.executable, f"{profile or self.new}.toml", "--out", out]

    def shimmed(self, under: Path, more: Mapping[str, str]) -> tuple[dict[str, str | None], Path]:
        """The environment of a command that the shim watches, and the shim's state."""
        handle, name = tempfile.mkstemp(dir=self.site.root, prefix="state-")
        os.write(handle, bytes(32))
        os.close(handle)
        env: dict[str, str | None] = {
            "LD_PRELOAD": str(self.shim), "FAULT_STATE": name, "FAULT_UNDER": str(under), **more
        }  # fmt: skip
        return env, Path(name)

    def run(self, command: Sequence[str], more: Mapping[str, str], under: Path | None = None) -> Ended:
        """Run a command to its end under the shim."""
        env, state = self.shimmed(under or self.out, more)
        with tempfile.TemporaryFile(dir=self.site.root) as err:
            # A file, not a pipe: what a killed envspec leaves behind keeps its end of a pipe open.
            process = subprocess.Popen(
                command, cwd=self.site.root, env=environment(env), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=err, start_new_session=True,
            )  # fmt: skip
            code = process.wait(timeout=120)
            err.seek(0)
            text = err.read().decode()
        struck = int.from_bytes(state.read_bytes()[16:24], "little") == 1
        state.unlink()
        return Ended(code, text, struck)

    def operations(self, command: Sequence[str], under: Path | None = None) -> list[str]:
        """Every operation on files that a command does, in order."""
        log = self.site.root / "operations.log"
        log.unlink(missing_ok=True)
        ended = self.run(command, {"FAULT_LOG": str(log)}, under)
        assert ended.code == 0, ended.err
        return log.read_text(errors="replace").splitlines()

    # ---- checking

    def check(self, what: str, *, next_build: bool = True) -> None:
        """After a fault: what must be, is."""
        self.injected += 1
        self.seen[what] = self.seen.get(what, 0) + 1
        problems = [*self.runs(), *self.whole()]
        if next_build:
            problems += self.next_build()
        problems += self.debris()
        self.problems += [f"{what}: {problem}" for problem in problems]
        self.survived += not problems

    def runs(self) -> Iterator[str]:
        """The environment that is current, seen from outside."""
        code = "import app, lib, shared; print(app.version, shared.owner)"
        done = subprocess.run([str(self.out / "venv/bin/python"), "-c", code], capture_output=True, text=True)
        version = {"even": "1.0", "odd": "2.0"}
        if done.stdout.split() not in ([version[self.old], "second"], [version[self.new], "second"]):
            yield f"the environment does not run: {done.stdout}{done.stderr}"
        script = '. "$1" && [ -x "$CUDA_HOME/bin/nvcc" ] && python -c "import app"'
        done = subprocess.run(
            ["sh", "-c", script, "sh", str(self.out / "sglang_env.sh")], capture_output=True, text=True
        )
        if done.returncode != 0:
            yield f"the script does not work: {done.stderr}"

    def whole(self) -> Iterator[str]:
        """Data lost: what was published is not as it was published."""
        done = self.site.call("verify", "--hash", "--out", "out")
        if done.code != 0:
            yield f"verify: {done.out}{done.err}"
        elif self.site.digest("out") not in (self.digests[self.old], self.digests[self.new]):
            yield "the digest is neither the old nor the new one"

    def next_build(self) -> Iterator[str]:
        """It succeeds and has the right digest; gc leaves only it."""
        done = self.site.call(*self.build_command()[len(ENVSPEC) :])
        if done.code != 0:
            yield f"the next build: {done.err}"
            return
        self.turn += 1
        if self.site.digest("out") != self.digests[self.old]:
            yield f"the next build has the digest {self.site.digest('out')}"
        self.site.gc("out")

    def debris(self) -> Iterator[str]:
        """What does not belong into an output after a build that passed."""
        state = self.out / ".envspec"
        for place, allowed in ((self.out, OUT_NAMES), (state, STATE_NAMES)):
            # A build that was killed left no log.
            odd = ({p.name for p in place.iterdir()} ^ allowed) - {"last-build.log"}
            if odd:
                yield f"{place.name} holds {sorted(odd)}"
        for generation in (state / "generations").iterdir():
            names = {p.name for p in generation.iterdir()}
            if names != {"venv", "cuda", "sglang_env.sh", "envspec.json", "stats.msgpack", "shells"}:
                yield f"generation {generation.name} holds {sorted(names)}"
        needed = {p.joinpath("cuda").resolve().name for p in (state / "generations").iterdir()}
        extra = {p.name for p in (state / "toolchains").iterdir()} - needed
        if extra:
            yield f"toolchains {sorted(extra)}"
        left = [p.name for p in self.site.root.iterdir() if p.name.endswith(".new")]
        if left:
            yield f"beside the profile: {left}"

    # ---- faults

    def kill_at(self, number: int, who: str) -> str:
        """Kill a build at its n-th operation on files. Returns the stage that it had reached."""
        ended = self.run(self.build_command(), {"FAULT_AT": str(number), "FAULT_DO": f"kill-{who}"})
        if ended.struck and who != "self":
            assert ended.code == -signal.SIGKILL, ended
        return reached(ended.err)

    def kill_after(self, lines: int, delay: float) -> str:
        """Kill a build some time after its n-th line. Returns the stage that it had reached."""
        process = subprocess.Popen(
            self.build_command(), cwd=self.site.root, env=environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert process.stderr is not None
        said = ""
        for _ in range(lines):
            said += process.stderr.readline()
        time.sleep(delay)
        process.kill()
        process.wait()
        process.stderr.close()
        return reached(said)

    def fail_at(self, number: int, error: str, sticky: bool) -> Ended:
        """Let the n-th operation of a build fail, and with `sticky` all after it."""
        more = {
            "FAULT_AT": str(number),
            "FAULT_DO": str(ERRNO[error]),
            **({"FAULT_STICKY": "1"} if sticky else {}),
        }
        ended = self.run(self.build_command(), more)
        if "Traceback" in ended.err or ended.code not in (0, 1, 2, 3):
            self.problems.append(f"{error} at {number}: exit {ended.code}: {ended.err[-400:]}")
        return ended

    def kill_command(self, command: Sequence[str], number: int) -> Ended:
        """Kill any other command at its n-th operation."""
        return self.run([*ENVSPEC, *command], {"FAULT_AT": str(number), "FAULT_DO": "kill-main"})


STAGES = ("profile", "lock", "check", "install", "toolkit", "script", "smoke", "publish")


def reached(err: str) -> str:
    """The stage that was running when the last line came."""
    done = [line.split()[0] for line in err.splitlines() if re.match(r"[a-z]+ +\S.*\(\d+\.\d s\)$", line)]
    finished = [name for name in done if name in STAGES]
    at = STAGES.index(finished[-1]) + 1 if finished else 0
    return STAGES[at] if at < len(STAGES) else "after publish"


def spread(total: int, count: int) -> list[int]:
    """`count` numbers from 1 to `total`, evenly."""
    return sorted({1 + round(i * (total - 1) / max(count - 1, 1)) for i in range(count)})
