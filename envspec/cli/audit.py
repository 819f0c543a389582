"""`envspec audit`: the current generation of an output, looked at on disk."""

from __future__ import annotations

from pathlib import Path

import click

from envspec.audit.environment import of_manifest
from envspec.audit.run import audit
from envspec.cli.codes import allowed_codes
from envspec.cli.options import allow_option, hash_option, json_option, out_option
from envspec.cli.progress import make_progress
from envspec.cli.show import show_report
from envspec.output.directory import current_generation
from envspec.output.manifest import read_manifest


@click.command("audit")
@out_option
@allow_option
@click.option("--gpu-code", is_flag=True, help="Show which packages have machine code for the profile's GPU.")
@hash_option("Compare the content of every file, not only its size.")
@json_option
def audit_command(
    out: Path, allow: tuple[str, ...], gpu_code: bool, check_contents: bool, as_json: bool
) -> None:
    """Check the installed files: does every library find what it needs?"""
    generation = current_generation(out)[1]
    manifest = read_manifest(generation.manifest)
    with make_progress().stage("audit") as stage:
        found = audit(
            of_manifest(generation, manifest),
            str(out),
            gpu_code=gpu_code,
            hashes=check_contents,
            allowed=allowed_codes(allow),
        )
        stage.result = f"generation {generation.number} of {manifest.profile}"
    show_report(found, as_json=as_json)
