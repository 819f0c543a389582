"""`envspec doctor`: this machine, for a profile or for none."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import click

from envspec.cli.check_names import CheckName, CheckNames
from envspec.cli.options import json_option, out_option
from envspec.cli.render import render_checks
from envspec.cli.show import show, show_report
from envspec.data.shipped import find_profile
from envspec.doctor import run_checks
from envspec.doctor.checks import CHECKS, Wanted
from envspec.host.machine import Host
from envspec.profile import read_profile
from envspec.report.errors import UsageError
from envspec.report.findings import Report, report


@click.command("doctor")
@click.argument("words", nargs=-1, metavar="[PROFILE] [CHECK]...")
@out_option
@click.option("--list", "listing", is_flag=True, help="List the checks and run none.")
@json_option
def doctor_command(words: tuple[str, ...], out: Path, listing: bool, as_json: bool) -> None:
    """Check this machine: is it fit for PROFILE, and does anything mislead compilers?

    It only reads. With names of checks, only those are run. Exit 1 if there are errors.
    """
    profile, checks = split_words(words)
    if listing:
        rows = (CheckName(name=row.code, means=row.summary, slow=row.slow) for row in CHECKS.all())
        show(CheckNames(command="doctor", checks=tuple(rows)), render_checks, as_json=as_json)
    else:
        show_report(examine(profile, checks, out, Host()), as_json=as_json)


def split_words(words: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return the profile and the checks: a first word that names no check is the profile. Raises UsageError `doctor-check`."""
    names = {row.code for row in CHECKS.all()}
    profile = words[0] if words and words[0] not in names else None
    checks = tuple(words[1:] if profile is not None else words)
    for name in checks:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            raise UsageError(
                "doctor-check",
                f"doctor has no check {name!r}",
                fix=f"did you mean {close[0]}?" if close else "envspec doctor --list shows them",
            )
    return profile, checks


def examine(profile: str | None, checks: Sequence[str], out: Path, host: Host) -> Report:
    """Run the named checks, or all. Raises what reading the profile raises."""
    asked = read_profile(find_profile(profile)) if profile is not None else None
    wanted = Wanted(profile=asked, out=str(out.absolute()))
    chosen = [row for row in CHECKS.all() if not checks or row.code in checks]
    subject = str(asked.path) if asked is not None else "this machine"
    return report("doctor", subject, run_checks(host, wanted, chosen))
