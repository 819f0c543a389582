"""`envspec repair`: what has changed in the current generation, put back."""

from __future__ import annotations

from pathlib import Path

import click

from envspec.cli.options import hash_option, json_option, offline_option, out_option
from envspec.cli.progress import make_progress, waiting_for
from envspec.cli.render import count_repaired
from envspec.cli.show import show_report
from envspec.data.shipped import find_profile
from envspec.integrity.repair import Request, repair
from envspec.output.directory import current_generation
from envspec.output.lock import locked
from envspec.profile import read_profile
from envspec.uv.run import Uv


@click.command("repair")
@out_option
@click.option("--prune", is_flag=True, help="Also remove packages that are not in the lock.")
@hash_option("Read every file instead of trusting size, time and inode.")
@click.option("--profile", help="The profile, needed where packages come from an index that it names itself.")
@json_option
@offline_option
def repair_command(
    out: Path, prune: bool, check_contents: bool, profile: str | None, as_json: bool, offline: bool
) -> None:
    """Put back exactly what has changed in the current environment."""
    output = current_generation(out)[0]
    asked = read_profile(find_profile(profile)) if profile else None
    indexes = asked.indexes if asked is not None else ()
    request = Request(indexes=indexes, prune=prune, check_contents=check_contents)
    with locked(output, waiting_for) as descriptor, make_progress().stage("repair") as stage:
        uv = Uv(offline=offline, reporter=stage.detail, inherit_fds=(descriptor,))
        # Whoever held the lock may have published another generation.
        done = repair(output, current_generation(out)[1], uv, request, stage.detail)
        stage.result = count_repaired(done)
    show_report(done.report, as_json=as_json)
