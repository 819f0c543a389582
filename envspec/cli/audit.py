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
from envspec.integrity.drift import files_now, find_drift, owners_now
from envspec.integrity.drift_findings import drift_findings
from envspec.output.directory import current_generation


@click.command("audit")
@out_option
@allow_option
@click.option("--gpu-code", is_flag=True, help="Show which packages have machine code for the profile's GPU.")
@hash_option("Read every file instead of trusting size, time and inode.")
@json_option
def audit_command(
    out: Path, allow: tuple[str, ...], gpu_code: bool, check_contents: bool, as_json: bool
) -> None:
    """Check the installed files: do they link, and are they what was published?"""
    output, generation = current_generation(out)
    with make_progress().stage("audit") as stage:
        manifest, drift = find_drift(output, generation, check_contents=check_contents, detail=stage.detail)
        found = audit(
            of_manifest(generation, manifest),
            str(out),
            files_now(manifest, drift),
            owners_now(manifest, drift),
            gpu_code=gpu_code,
            drift=drift_findings(manifest, drift),
            allowed=allowed_codes(allow),
        )
        stage.result = f"generation {generation.number} of {manifest.profile}"
    show_report(found, as_json=as_json)
