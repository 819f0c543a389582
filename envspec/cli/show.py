"""Printing a result: as text or as JSON, and the exit code that its errors make."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import click
import msgspec

from envspec.cli.render import render_report
from envspec.report.errors import Exit
from envspec.report.findings import Report, to_json

R = TypeVar("R", bound=msgspec.Struct)


def show(result: R, render: Callable[[R], str | Iterable[str]], *, as_json: bool) -> None:
    """Print a result. `render` makes its text, or its lines."""
    if as_json:
        click.echo(to_json(result), nl=False)
        return
    text = render(result)
    if isinstance(text, str):
        click.echo(text, nl=False)
        return
    for line in text:
        click.echo(line)


def show_report(report: Report, *, as_json: bool) -> None:
    """Print a report, and end the command with exit code 1 if there are errors in it."""
    show(report, render_report, as_json=as_json)
    fail_on_errors(report)


def fail_on_errors(report: Report) -> None:
    """End the command with exit code 1 if there are errors in a report that was printed."""
    if report.errors:
        raise click.exceptions.Exit(int(Exit.FINDINGS))
