"""`envspec check`: can the locked set work? With `--fix`, the profile is changed until it can."""

from __future__ import annotations

import os

import click

from envspec.check.fix import fix_profile
from envspec.check.input import target_of
from envspec.check.run import check_profile
from envspec.cli.codes import allowed_codes
from envspec.cli.options import allow_option, json_option, offline_option, profile_argument, python_option
from envspec.cli.progress import make_progress
from envspec.cli.show import say, show_report
from envspec.data.shipped import find_profile
from envspec.profile import Profile, read_profile
from envspec.report.findings import Report
from envspec.uv.run import Uv
from envspec.venv.interpreter import resolving_python


@click.command("check")
@profile_argument
@python_option
@allow_option
@click.option("--fix", is_flag=True, help="Change the profile where the fix is known, and show the changes.")
@click.option("--frozen", is_flag=True, help="Check the lock as it is, even if the profile has changed.")
@json_option
@offline_option
def check_command(
    profile: str,
    python: str | None,
    allow: tuple[str, ...],
    fix: bool,
    frozen: bool,
    as_json: bool,
    offline: bool,
) -> None:
    """Check whether the locked set of PROFILE can work, before the download."""
    path = find_profile(profile)
    allowed = allowed_codes(allow)
    uv = Uv(offline=offline)
    progress = make_progress()

    def check(asked: Profile) -> Report:
        return check_profile(asked, uv, os.environ, progress, python=python, frozen=frozen, allowed=allowed)

    asked = read_profile(path)
    if not fix:
        show_report(check(asked), as_json=as_json)
        return
    result = fix_profile(path, target_of(asked, python), uv, resolving_python(asked, uv), check)
    for line in result.difference:
        say(line, err=as_json)
    if not result.difference:
        click.echo(
            "nothing to fix: no error has a known fix" if result.report.errors else "nothing to fix",
            err=as_json,
        )
    show_report(result.report, as_json=as_json)
