"""`envspec diagnose`: a log, read from a file or from standard input, with what is known of an output."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from envspec.cli.options import json_option
from envspec.cli.show import show
from envspec.diagnose import Diagnosis, diagnose, render_text
from envspec.report.errors import UsageError


@click.command("diagnose")
@click.argument("log")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Relate the cause to this output, and name the command that removes it.",
)
@json_option
def diagnose_command(log: str, out: Path | None, as_json: bool) -> None:
    """Find the root cause of a failure in LOG, a file or - for standard input.

    The log may be of a server, a compiler or an installer. Exit 0 whenever the log was read.
    """
    show(_diagnosis(log, out), render_text, as_json=as_json)


def _diagnosis(log: str, out: Path | None) -> Diagnosis:
    """Read the log. Raises UsageError `log-unreadable`, or `output-missing` for an `out` that is none."""
    facts = None
    if out is not None:
        from envspec.cli.output_facts import facts_of_output  # slow to import, and most calls do without

        facts = facts_of_output(out)
    try:
        if log == "-":
            return diagnose(sys.stdin.buffer, facts=facts)
        with Path(log).open("rb") as stream:
            return diagnose(stream, facts=facts)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            "log-unreadable", f"cannot read {log}: {reason}", fix="name a file, or - for standard input"
        ) from None
