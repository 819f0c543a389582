"""`envspec run`: a command inside an environment, by replacing this process with it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from envspec.activation.process import process_environment
from envspec.cli.options import out_option
from envspec.host.commands import Command, announce
from envspec.output.directory import current_generation
from envspec.output.manifest import read_head
from envspec.report.errors import UsageError
from envspec.venv.usable import unusable_python


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@out_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def run_command(out: Path, command: tuple[str, ...]) -> None:
    """Run COMMAND inside the environment, without sourcing its script.

    Signals and the exit code pass through: envspec is replaced by the command.
    """
    _become(out, command)


def _become(out: Path, command: Sequence[str]) -> NoReturn:
    """Replace this process with `command` in the environment of `out`; it keeps the pid, so signals reach it.

    Raises UsageError `output-missing`, `output-unbuilt`, `environment-python` or `command-not-found`.
    """
    generation = current_generation(out)[1]
    if reason := unusable_python(generation.venv):
        raise UsageError(
            "environment-python",
            f"the environment's interpreter {reason}",
            where=str(generation.venv / "bin" / "python"),
            fix="install the Python that it was built with again, or build again",
        )
    values = read_head(generation.manifest).script
    environment = process_environment(values, generation.path, os.environ)
    found = shutil.which(command[0], path=environment.get("PATH"))
    if found is None:
        raise UsageError(
            "command-not-found",
            f"there is no command {command[0]!r}",
            where=f"PATH of the environment in {out}",
            fix="check its name; what a package brings has to be in the profile",
        )
    announce(Command(arguments=(found, *command[1:]), environment=environment))
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these, and what is ignored stays so in the command: `envspec run -- yes | head` would not end.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(found, list(command), environment)
    except OSError as error:
        raise UsageError(
            "command-not-found",
            f"cannot run {found}: {error.strerror}",
            where=f"PATH of the environment in {out}",
        ) from None
