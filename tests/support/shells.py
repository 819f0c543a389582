"""An output directory as a build leaves it, and the shells that must be able to source its script."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from envspec.activation.script import render_script
from envspec.activation.values import SCRIPT, ScriptValues
from envspec.host.memory import HostFiles
from tests.support import needs

VALUES = ScriptValues(
    toolchain="0123456789abcdef",
    arch="12.0a",
    memory_per_job=4 << 30,
    site_packages="lib/python3.12/site-packages",
    variables=(("HF_HOME", 'it\'s $HOME; `x` \\ "q"\n*'), ("http_proxy", ""), ("QUACK_CACHE_DIR", "mine")),
    prompt="rtx-pro-6000",
)

SHELLS = {"bash": ("bash",), "zsh": ("zsh", "-f"), "dash": ("dash",), "ash": ("busybox", "ash")}


def shells(*names: str) -> list[object]:
    """The names of shells as parameters of a test, all of them if none is given."""
    return [pytest.param(name, marks=needs.program(SHELLS[name][0])) for name in names or SHELLS]


class Shell(msgspec.Struct, frozen=True):
    """One shell, started without the user's start-up files."""

    name: str
    command: tuple[str, ...]

    def run(
        self, script: str, *, cwd: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The script's outcome. Its output is text as it stands, whatever bytes it has."""
        done = subprocess.run(
            [*self.command, "-c", script],
            cwd=cwd,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", **(env or {})},
            capture_output=True,
            check=False,
            timeout=60,
        )
        # Decoded here, because subprocess would turn each \r into \n.
        said, complained = (part.decode(errors="surrogateescape") for part in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, said, complained)

    def says(self, script: str, *, cwd: Path, env: Mapping[str, str] | None = None) -> str:
        """What the script prints; it must succeed and say nothing on stderr."""
        done = self.run(script, cwd=cwd, env=env)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def exports(self, script: str, *, cwd: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment that a child of the shell sees after the script."""
        return parsed(self.says(f"{script}\n/usr/bin/env -0", cwd=cwd, env=env))


# What shells and env(1) keep for themselves.
BOOKKEEPING = {"_", "SHLVL", "PWD", "OLDPWD"}


def parsed(listing: str) -> dict[str, str]:
    """The output of `env -0`."""
    pairs = (entry.split("=", 1) for entry in listing.split("\0") if entry)
    return {name: value for name, value in pairs if name not in BOOKKEEPING}


class Output:
    """An output directory with generations that hold a script and little else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / ".envspec"

    @property
    def script(self) -> Path:
        """What people type."""
        return self.root / SCRIPT

    def generation(self, number: int) -> Path:
        return self.state / "generations" / str(number)

    def write(self, number: int, values: ScriptValues = VALUES, host: HostFiles | None = None) -> Output:
        generation = self.generation(number)
        (generation / "venv" / "bin").mkdir(parents=True, exist_ok=True)
        text = render_script(values, host)
        (generation / SCRIPT).write_bytes(text.encode())
        (self.state / "toolchains" / values.toolchain / "bin").mkdir(parents=True, exist_ok=True)
        return self

    def switch(self, number: int) -> Output:
        for link, target in (
            (self.root / "current", f".envspec/generations/{number}"),
            (self.script, f"current/{SCRIPT}"),
        ):
            link.unlink(missing_ok=True)
            link.symlink_to(target)
        return self
