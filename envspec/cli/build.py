"""`envspec build`: a profile, turned into an environment."""

from __future__ import annotations

from pathlib import Path

import click

from envspec.build.pipeline import build
from envspec.build.plan import BuildRequest
from envspec.cli.built import built_of
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
from envspec.cli.render import render_built
from envspec.cli.show import show
from envspec.data.shipped import find_profile
from envspec.lock.ensure import LockMode, LockPolicy


@click.command("build")
@profile_argument
@out_option
@python_option
@click.option("--locked", is_flag=True, help="Fail if the lock does not match the profile.")
@click.option("--frozen", is_flag=True, help="Use the lock as it is, even if the profile has changed.")
@allow_option
@click.option(
    "--expect", metavar="DIGEST", help="Fail if the environment's digest is another one (envspec digest)."
)
@json_option
@offline_option
def build_command(
    profile: str,
    out: Path,
    python: str | None,
    locked: bool,
    frozen: bool,
    allow: tuple[str, ...],
    expect: str | None,
    as_json: bool,
    offline: bool,
) -> None:
    """Build the environment of PROFILE, or say that it is up to date."""
    if locked and frozen:
        raise click.UsageError("--locked and --frozen exclude each other")
    mode = LockMode.LOCKED if locked else LockMode.FROZEN if frozen else LockMode.UPDATE
    request = BuildRequest(
        profile=find_profile(profile),
        out=out,
        python=python,
        lock=LockPolicy(mode=mode),
        offline=offline,
        allowed=allowed_codes(allow),
        expected=expect,
    )
    show(built_of("build", build(request, make_progress())), render_built, as_json=as_json)
