"""`envspec upgrade`: new versions, shown, confirmed and built."""

from __future__ import annotations

from pathlib import Path

import click

from envspec.build.pipeline import build
from envspec.build.plan import BuildRequest
from envspec.cli.built import Built, built_of
from envspec.cli.codes import allowed_codes
from envspec.cli.options import (
    allow_option,
    json_option,
    offline_option,
    out_option,
    profile_argument,
    python_option,
)
from envspec.cli.progress import make_progress
from envspec.cli.render import render_upgraded
from envspec.cli.show import say, show
from envspec.data.shipped import find_profile
from envspec.lock.ensure import LockPolicy
from envspec.lock.model import LockChange


@click.command("upgrade")
@profile_argument
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@out_option
@python_option
@allow_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@offline_option
def upgrade_command(
    profile: str,
    packages: tuple[str, ...],
    out: Path,
    python: str | None,
    allow: tuple[str, ...],
    yes: bool,
    as_json: bool,
    offline: bool,
) -> None:
    """Upgrade PACKAGES (or all) of PROFILE: lock, check, show, ask, build.

    The new environment becomes current only if everything passed.
    """

    def confirm(changes: tuple[LockChange, ...]) -> bool:
        for change in changes:
            say(f"  {change}", err=as_json)
        return yes or click.confirm("build this?", err=as_json)

    request = BuildRequest(
        profile=find_profile(profile),
        out=out,
        python=python,
        lock=LockPolicy(upgrade=packages, written_last=True),
        offline=offline,
        allowed=allowed_codes(allow),
    )
    result = build(request, make_progress(), confirm)
    built = built_of("upgrade", result) if result.built else Built(command="upgrade", built=False)
    show(built, render_upgraded, as_json=as_json)
