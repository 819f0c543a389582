"""The only caller of uv: it resolves, creates venvs, downloads and installs.

Every call is an argument list (no shell), runs in a directory that holds its own `pyproject.toml`, so that no
configuration of an unrelated project nearby is picked up, and in an environment without the variables that would
change a resolution. The user's own indexes, mirrors, credentials, cache and proxy stay in force.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from envspec.data import load_table
from envspec.host.commands import Command, run
from envspec.report.errors import EnvspecError, ExternalError, UsageError
from envspec.report.secrets import masked_addresses

_REASON_LINES = 40


class UvErrorRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes one row of `data/uv_errors.toml`."""

    code: str
    kind: str
    pattern: str
    what: str
    fix: str
    source: str
    as_of: str


class Interpreter(msgspec.Struct, frozen=True):
    """Describes a Python that uv found. `version` is the full version, `path` the executable."""

    version: str
    path: Path
    implementation: str
    machine: str


class UvVariableRow(msgspec.Struct, frozen=True, rename="kebab"):
    """Describes one row of `data/uv_variables.toml`: variables that uv does not get, and why."""

    group: str
    names: tuple[str, ...]
    why: str
    source: str
    as_of: str


@cache
def withheld_variables() -> frozenset[str]:
    """Return the names of the caller's variables that uv does not get."""
    return frozenset(name for row in load_table("uv_variables", UvVariableRow) for name in row.names)


@cache
def _error_rows() -> tuple[UvErrorRow, ...]:
    return load_table("uv_errors", UvErrorRow)


def find_uv() -> Path:
    """Return the uv that envspec depends on, else the one on PATH. Raise ExternalError `uv-missing`."""
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        import shutil

        found = shutil.which("uv")
        if found is None:
            raise ExternalError("uv-missing", "uv is not installed", fix="pip install uv") from None
        return Path(found)


def _silent(line: str) -> None:
    """Drop a line."""


class Said(msgspec.Struct, frozen=True):
    """Says what one call of uv printed: its standard output, and the lines of its standard error (progress and warnings)."""

    out: str
    messages: tuple[str, ...]


class Uv(msgspec.Struct, frozen=True, kw_only=True):
    """Runs uv with one environment. It is a frozen value: who wants other settings makes another one.

    `base_env` is the environment of the caller, of which uv gets what `env` leaves. `reporter` is told each line of uv's
    progress as it comes. Descriptors in `inherit_fds` are open in uv too: it holds the output's lock with them as long as
    it writes, even alone.
    """

    binary: Path = msgspec.field(default_factory=find_uv)
    base_env: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(os.environ))
    offline: bool = False
    reporter: Callable[[str], None] = _silent
    inherit_fds: tuple[int, ...] = ()

    def with_reporter(self, reporter: Callable[[str], None]) -> Uv:
        """Return the same uv, whose progress goes to `reporter`."""
        return msgspec.structs.replace(self, reporter=reporter)

    def inheriting(self, *descriptors: int) -> Uv:
        """Return the same uv, which also keeps these descriptors open while it runs."""
        return msgspec.structs.replace(self, inherit_fds=(*self.inherit_fds, *descriptors))

    @property
    def env(self) -> dict[str, str]:
        """Return the environment that uv runs in: the caller's without what would change a resolution."""
        withheld = withheld_variables()
        env = {name: value for name, value in self.base_env.items() if name not in withheld}
        # envspec never lets a build fetch an interpreter behind the user's back.
        env |= {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1", "UV_NO_ENV_FILE": "1"}
        if self.offline:
            env["UV_OFFLINE"] = "1"
        # uv runs in directories of its own, where a relative path would lead elsewhere each time.
        for name in ("UV_CACHE_DIR", "UV_CONFIG_FILE"):
            if env.get(name):
                env[name] = str(Path(env[name]).absolute())
        return env

    def version(self) -> str:
        """Return uv's version, such as `0.13.9`."""
        return self.run(["--version"], cwd=Path("/")).out.split()[1]

    def cache_directory(self) -> Path:
        """Ask uv where it keeps what it has downloaded and unpacked: by its variables and the user's uv.toml."""
        return Path(self.run(["cache", "dir"], cwd=Path("/")).out.strip())

    def interpreters(self, search: Sequence[Path], cwd: Path) -> tuple[Interpreter, ...]:
        """Return every CPython that uv finds on PATH, in its own store, and in the directories `search`.

        pyenv's shims are passed over: most refuse to run, the others change their meaning with the directory they are
        called in, and asking them all takes more than a second.
        """
        on_path = self.env.get("PATH", "").split(os.pathsep)
        path = os.pathsep.join([d for d in on_path if Path(d).name != "shims"] + [str(d) for d in search])
        # Whatever configuration lies near `cwd` has no say in which interpreters there are.
        text = self.run(
            ["python", "list", "--no-config", "--only-installed", "--output-format", "json"],
            cwd=cwd,
            extra_env={"PATH": path},
        ).out
        return tuple(
            Interpreter(row["version"], Path(row["path"]), "cpython", row.get("arch", ""))
            for row in json.loads(text or "[]")
            if row.get("implementation") == "cpython"
            and row.get("path")
            and row.get("variant") != "freethreaded"
        )

    def lock(self, project: Path, python: Path, upgrade: Sequence[str] | None) -> tuple[str, ...]:
        """Write `project/uv.lock` and return what uv said on the way, such as which releases are yanked.

        `upgrade` names packages to raise; an empty sequence raises all; None raises none.
        """
        args = ["lock", "--python", str(python)]
        if upgrade is not None:
            args += (
                ["--upgrade"] if not upgrade else [a for name in upgrade for a in ("--upgrade-package", name)]
            )
        return self.run(args, cwd=project).messages

    def export(self, project: Path, python: Path) -> str:
        """Return the requirements form of `project/uv.lock`, with markers, without hashes."""
        args = ["export", "--frozen", "--no-emit-project", "--no-header", "--no-hashes", "--no-annotate"]
        return self.run([*args, "--format", "requirements.txt", "--python", str(python)], cwd=project).out

    def venv(self, at: Path, python: Path, cwd: Path, prompt: str) -> None:
        """Create a relocatable venv: its scripts find the interpreter beside themselves.

        uv writes the prompt unquoted into bin/activate, where a shell would run `$(...)` in it: only plain letters pass.
        """
        plain = re.sub(r"[^A-Za-z0-9._+-]", "_", prompt)
        self.run(["venv", "--relocatable", "--python", str(python), f"--prompt={plain}", str(at)], cwd=cwd)

    def install(
        self,
        requirements: Path,
        venv_python: Path,
        cwd: Path,
        *,
        sdists: Sequence[str] = (),
        again: bool = False,
    ) -> None:
        """Install exactly the locked requirements into the venv: no resolution, every hash verified.

        With `again` also what is installed already: its files are laid down once more.
        """
        args = ["pip", "install", "--python", str(venv_python), "--no-deps", "--require-hashes"]
        args += ["--index-strategy", "unsafe-best-match", "--only-binary", ":all:"]
        if again:
            args.append("--reinstall")
        for name in sdists:
            args += ["--no-binary", name]
        self.run([*args, "-r", str(requirements)], cwd=cwd)

    def clean(self, names: Sequence[str], cwd: Path) -> None:
        """Take packages out of the cache, so that the next installation fetches them anew."""
        self.run(["cache", "clean", *names], cwd=cwd)

    def run(self, args: Sequence[str], *, cwd: Path, extra_env: Mapping[str, str] | None = None) -> Said:
        """Run uv and return what it said; raise what its standard error means."""
        command = Command(
            arguments=(str(self.binary), "--color", "never", *args),
            environment={**self.env, **(extra_env or {})},
            directory=cwd,
            inherit_fds=self.inherit_fds,
            inputs=(cwd / "pyproject.toml",),
        )
        try:
            done = run(command, on_line=self.reporter)
        except OSError as error:
            raise ExternalError(
                "uv-missing", f"cannot run uv: {error.strerror}", where=str(self.binary)
            ) from None
        messages = done.err.decode("utf-8", "replace")
        if done.code != 0:
            raise explain_failure(messages, done.code)
        return Said(
            done.out.decode("utf-8", "replace"),
            tuple(messages.removesuffix("\n").split("\n") if messages else ()),
        )


def explain_failure(stderr: str, returncode: int) -> EnvspecError:
    """Return the error that uv's words mean, with the words as its reason."""
    reason = _reason(stderr)
    for row in _error_rows():
        if re.search(row.pattern, stderr):
            kind: Any = {"usage": UsageError, "external": ExternalError}.get(row.kind, EnvspecError)
            return kind(row.code, row.what, why=reason, fix=row.fix)  # type: ignore[no-any-return]
    if returncode < 0:
        return ExternalError(
            "uv-killed", f"uv was ended by signal {-returncode}", why=reason, fix="run it again"
        )
    return ExternalError(
        "uv-failed", f"uv failed with exit code {returncode}", why=reason, fix="the reason above is uv's own"
    )


def _reason(stderr: str) -> str:
    """Return uv's error without its progress, in the words of a profile, without index addresses and control characters."""
    lines = stderr.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("error:")), 0)
    kept = [line.rstrip() for line in lines[start:] if line.strip()]
    if len(kept) > _REASON_LINES:
        kept = [*kept[:_REASON_LINES], f"[{len(kept) - _REASON_LINES} more lines]"]
    text = "\n".join(kept)
    text = masked_addresses(text)
    text = text.replace("your project", "your profile").removeprefix("error: ")
    return "".join(c for c in text if c.isprintable() or c == "\n")
