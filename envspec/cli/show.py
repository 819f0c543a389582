"""Printing a result: as text or as JSON, and the exit code that its errors make."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import click
import msgspec

from envspec.cli.render import render_report
from envspec.report.errors import Exit
from envspec.report.findings import Report, to_json
from envspec.report.text import printable

R = TypeVar("R", bound=msgspec.Struct)


def show(result: R, render: Callable[[R], str | Iterable[str]], *, as_json: bool) -> None:
    """Print a result. `render` makes its text, or its lines."""
    if as_json:
        click.echo(to_json(result), nl=False)
        return
    text = render(result)
    for line in text.splitlines() if isinstance(text, str) else text:
        say(line)


def say(line: str, *, err: bool = False) -> None:
    """Print one line. Whatever a wheel, an index, a manifest or a log put into it, it moves no cursor."""
    click.echo(printable(line.expandtabs()), err=err)


def show_report(report: Report, *, as_json: bool) -> None:
    """Print a report, and end the command with exit code 1 if there are errors in it."""
    show(report, render_report, as_json=as_json)
    fail_on_errors(report)


def fail_on_errors(report: Report) -> None:
    """End the command with exit code 1 if there are errors in a report that was printed."""
    if report.errors:
        raise click.exceptions.Exit(int(Exit.FINDINGS))
