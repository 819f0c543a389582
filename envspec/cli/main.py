"""The `envspec` command: its group, its signals, and the one place where an error becomes text or JSON and an exit code.

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
from envspec.report.errors import EnvspecError, Exit, InternalError, Interrupted, Terminated, UsageError


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="envspec")
def cli() -> None:
    """Turn a TOML profile into a Python environment whose kernels compile."""


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
    except click.ClickException as error:
        if not _json_wanted(arguments):
            error.show()
            return int(Exit.USAGE)
        ended: EnvspecError = _usage_error(error)
    except EnvspecError as error:
        ended = error
    except (KeyboardInterrupt, click.Abort):
        ended = Interrupted()
    except Terminated as error:
        ended = Interrupted(error.signal_number)
    except OSError as error:
        from envspec.report.os_errors import explain_os_error

        ended = explain_os_error(error)
    except Exception as error:  # noqa: BLE001 - the one boundary: a fault of envspec is told as such
        sys.excepthook(type(error), error, error.__traceback__)
        ended = InternalError(error)
    _tell(ended, arguments)
    return int(ended.exit)


def _tell(error: EnvspecError, arguments: Sequence[str]) -> None:
    """Print an error: on standard output as JSON where that is wanted, else on standard error as text."""
    if _json_wanted(arguments):
        from envspec.report.error_report import error_report
        from envspec.report.findings import to_json

        click.echo(to_json(error_report(_verb(arguments), error)), nl=False)
    elif isinstance(error, Interrupted):
        if error.by_user:
            click.echo(f"{error.what}; {error.why}", err=True)
    else:
        from envspec.report.text import render_error

        click.echo(render_error(error), err=True, nl=False)


def _verb(arguments: Sequence[str]) -> str:
    """Return the command that was called; empty if none of the words is one."""
    return next((word for word in arguments if word in cli.commands), "")


def _json_wanted(arguments: Sequence[str]) -> bool:
    """Tell whether `--json` is among envspec's own words. What stands behind `run` belongs to the command that is run.

    The words are looked at because a call that is wrong may have no context that says it.
    """
    own = list(arguments)
    if "--" in own:
        own = own[: own.index("--")]
    return "--json" in own and _verb(own) != "run"


def _usage_error(error: click.ClickException) -> UsageError:
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "envspec"
    return UsageError("usage", error.format_message(), where=where, fix=f"see: {where} --help")


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated(number)
