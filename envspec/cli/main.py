"""The `envspec` command: its group, its signals, and the one place where whatever ends a command is caught.

Nothing is decided here. A command's module is imported when the command is called, not before.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from envspec import __version__
from envspec.cli.group import LazyGroup
from envspec.report.errors import Exit, Terminated


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="envspec")
@click.option(
    "-v",
    "--verbose",
    count=True,
    help="Show every command that is run, with its input and its changed variables; -vv also what it prints.",
)
@click.pass_context
def cli(context: click.Context, verbose: int) -> None:
    """Turn a TOML profile into a Python environment whose kernels compile."""
    if verbose:
        from envspec.cli.verbose import commands_shown

        context.with_resource(commands_shown(output=verbose > 1))


def main() -> NoReturn:
    """Run the command line of this process, and exit."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP, and so do we then
            signal.signal(number, _terminate)
    # A command lives for seconds and makes hundreds of thousands of values without a cycle: looking for cycles among them
    # took a third of the time of an inventory of the environment.
    gc.disable()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Whatever ends the command is told on one of the two outputs."""
    try:
        # Click gives the code of an Exit as the result when it does not stand alone.
        return cli.main(list(arguments), prog_name="envspec", standalone_mode=False) or int(Exit.OK)
    except (Exception, KeyboardInterrupt, Terminated) as error:  # noqa: BLE001 - the one boundary
        from envspec.cli.failure import tell  # which a command that does not fail need not wait for

        verb = _verb(arguments)
        return tell(error, verb, as_json=_json_wanted(arguments, verb))


def _verb(arguments: Sequence[str]) -> str:
    """Return the command that was called; empty if none of the words is one."""
    return next((word for word in arguments if word in cli.commands), "")


def _json_wanted(arguments: Sequence[str], verb: str) -> bool:
    """Tell whether `--json` is among envspec's own words. What stands behind `run` belongs to the command that is run.

    The words are looked at because a call that is wrong may have no context that says it.
    """
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own and verb != "run"


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated(number)
