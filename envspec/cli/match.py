"""`envspec match`: the releases of an extension against torch releases."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import click

from envspec.check.match import match
from envspec.cli.options import json_option, offline_option
from envspec.cli.progress import make_progress
from envspec.cli.render import render_match
from envspec.cli.show import show
from envspec.lock.targets import Target
from envspec.report.errors import UsageError
from envspec.torch_abi import exports
from envspec.uv.run import Uv


@click.command("match")
@click.argument("package")
@click.option("--torch", metavar="VERSION", help="Say for each release whether it fits this torch.")
@click.option(
    "--python",
    "minor",
    default="3.12",
    show_default=True,
    metavar="MINOR",
    help="The Python that wheels are for.",
)
@click.option("--machine", type=click.Choice(["x86_64", "aarch64"]), help="The machine; this one by default.")
@click.option("--most", default=20, show_default=True, help="How many of the newest releases to examine.")
@json_option
@offline_option
def match_command(
    package: str, torch: str | None, minor: str, machine: str | None, most: int, as_json: bool, offline: bool
) -> None:
    """Show which releases of the extension PACKAGE fit which torch, by their symbols."""
    target = Target(minor, machine or platform.machine())
    release = known_torch(torch, target.machine) if torch else None
    with make_progress().stage("match") as stage:
        table = match(package, target, Uv(offline=offline), Path(sys.executable), most, stage.detail)
        stage.result = f"{len(table.rows)} releases of {table.package} on {table.machine}"
    show(table, lambda found: render_match(found, release), as_json=as_json)


def known_torch(torch: str, machine: str) -> str:
    """Return a torch release as the export table names it: without its label. Raises UsageError `unknown-torch`."""
    table = exports.load()
    release = table.nearest(torch, machine)
    if release is None:
        raise UsageError(
            "unknown-torch",
            f"envspec does not know what torch {torch} exports on {machine}",
            where="--torch",
            fix=f"it knows {', '.join(table.releases(machine))}",
        )
    return release
