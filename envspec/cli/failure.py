"""How a command that fails ends: text on standard error, or JSON on standard output, and its exit code."""

from __future__ import annotations

import sys

import click

from envspec.cli.show import say
from envspec.report.error_report import error_report
from envspec.report.errors import EnvspecError, InternalError, Interrupted, Terminated, UsageError
from envspec.report.findings import to_json
from envspec.report.os_errors import explain_os_error
from envspec.report.text import render_error


def tell(error: BaseException, command: str, *, as_json: bool) -> int:
    """Print what ended a command, and return its exit code."""
    if isinstance(error, click.UsageError) and not as_json:
        error.show()
        return int(UsageError.exit)
    ended = _explained(error)
    if isinstance(ended, InternalError):
        sys.excepthook(type(error), error, error.__traceback__)
    if as_json:
        click.echo(to_json(error_report(command, ended)), nl=False)
    elif isinstance(ended, Interrupted):
        if ended.by_user:
            say(f"{ended.what}; {ended.why}", err=True)
    else:
        click.echo(render_error(ended), err=True, nl=False)
    return int(ended.exit)


def _explained(error: BaseException) -> EnvspecError:
    """Return an exception as an error with a code."""
    if isinstance(error, EnvspecError):
        return error
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "envspec"
        return UsageError("usage", error.format_message(), where=where, fix=f"see: {where} --help")
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Interrupted()
    if isinstance(error, Terminated):
        return Interrupted(error.signal_number)
    return explain_os_error(error) if isinstance(error, OSError) else InternalError(error)
