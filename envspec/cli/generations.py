"""`envspec generations`, `rollback`, `gc` and `digest`: what an output holds, and which of it is current."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from envspec.cli.options import json_option, out_option
from envspec.cli.progress import waiting_for
from envspec.cli.render import render_gc, render_generations
from envspec.cli.show import show
from envspec.output.directory import current_generation
from envspec.output.history import collect, list_generations, rollback
from envspec.output.manifest import read_manifest


class CurrentGeneration(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the result of `digest` and `rollback`."""

    version: int = 1
    command: str
    generation: int
    digest: str


@click.command("generations")
@out_option
@json_option
def generations_command(out: Path, as_json: bool) -> None:
    """List the generations of an output, and the processes that use them."""
    show(list_generations(out), render_generations, as_json=as_json)


@click.command("rollback")
@out_option
@click.argument("number", type=int, required=False)
@json_option
def rollback_command(out: Path, number: int | None, as_json: bool) -> None:
    """Make the previous generation current again, or generation NUMBER."""
    rollback(out, number, waiting_for)
    show(
        _current("rollback", out),
        lambda found: [f"generation {found.generation} is current"],
        as_json=as_json,
    )


@click.command("gc")
@out_option
@click.option(
    "--keep", default=1, show_default=True, type=click.IntRange(min=0), help="Older generations to keep."
)
@json_option
def gc_command(out: Path, keep: int, as_json: bool) -> None:
    """Remove old generations and toolchains that nothing needs and no process uses."""
    show(collect(out, keep, waiting_for), render_gc, as_json=as_json)


@click.command("digest")
@out_option
@json_option
def digest_command(out: Path, as_json: bool) -> None:
    """Print the environment digest: the same wherever the same environment was built."""
    show(_current("digest", out), lambda found: [found.digest], as_json=as_json)


def _current(command: str, out: Path) -> CurrentGeneration:
    generation = current_generation(out)[1]
    return CurrentGeneration(
        command=command, generation=generation.number, digest=read_manifest(generation.manifest).digest
    )
