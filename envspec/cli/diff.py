"""`envspec diff`: two generations, manifests, outputs, locks or profiles, compared."""

from __future__ import annotations

from pathlib import Path

import click

from envspec.cli.options import json_option, out_option
from envspec.cli.render import render_difference
from envspec.cli.show import show
from envspec.data.shipped import find_profile
from envspec.output.difference import compare, snapshot_of
from envspec.output.generations import Output


@click.command("diff")
@click.argument("a")
@click.argument("b")
@out_option
@json_option
def diff_command(a: str, b: str, out: Path, as_json: bool) -> None:
    """Compare A with B: generation numbers, manifests, outputs, locks or profiles."""
    output = Output(out.resolve())
    found = compare(*(snapshot_of(str(find_profile(text)), output) for text in (a, b)))
    show(found, render_difference, as_json=as_json)
