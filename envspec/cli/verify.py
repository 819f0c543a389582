"""`envspec verify`: what has changed in the current generation since it was published."""

from __future__ import annotations

from pathlib import Path

import click

from envspec.cli.options import hash_option, json_option, out_option
from envspec.cli.progress import make_progress
from envspec.cli.show import show_report
from envspec.integrity.drift_findings import verify
from envspec.output.directory import current_generation


@click.command("verify")
@out_option
@hash_option("Read every file instead of trusting size, time and inode.")
@json_option
def verify_command(out: Path, check_contents: bool, as_json: bool) -> None:
    """Show what has changed in the environment since it was published, and by whom."""
    output, generation = current_generation(out)
    with make_progress().stage("verify") as stage:
        found = verify(output, generation, check_contents=check_contents, detail=stage.detail)
        how = "by content" if check_contents else "by size, time and inode"
        stage.result = f"generation {generation.number}, {how}"
    show_report(found, as_json=as_json)
