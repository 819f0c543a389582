"""`envspec probe`: the probes of the current generation of an output."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from envspec.activation.process import process_environment
from envspec.cli.check_names import CheckName, CheckNames
from envspec.cli.options import json_option, out_option
from envspec.cli.output_facts import facts_of_output
from envspec.cli.progress import make_progress
from envspec.cli.render import render_checks, render_probes
from envspec.cli.show import fail_on_errors, show
from envspec.output.directory import current_generation
from envspec.output.manifest import read_head
from envspec.probe.reporting import ProbeReport, ProbeResult, finding_of, probe_report, result_of
from envspec.probe.rows import choose, probe_rows
from envspec.probe.running import Setting, run_all
from envspec.probe.scratch import compiler_slots, keep_log, scratch_directory
from envspec.report.progress import Progress


@click.command("probe")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@out_option
@click.option("--list", "listing", is_flag=True, help="List the probes and run none.")
@click.option(
    "--logs",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep what each probe printed, as DIR/NAME.log.",
)
@json_option
def probe_command(names: tuple[str, ...], out: Path, listing: bool, logs: Path | None, as_json: bool) -> None:
    """Compile what the environment's JIT compilers compile; on a GPU also run it.

    Without NAME, everything whose packages are installed. Exit 1 if something fails.
    """
    if listing:
        rows = (CheckName(name=row.name, means=row.means, packages=row.packages) for row in probe_rows())
        show(CheckNames(command="probe", checks=tuple(rows)), render_checks, as_json=as_json)
        return
    found = _run(names, out, logs, make_progress())
    show(found, render_probes, as_json=as_json)
    fail_on_errors(found)


def _run(names: tuple[str, ...], out: Path, logs: Path | None, progress: Progress) -> ProbeReport:
    """Run the probes. Raises UsageError `output-*`, `probe-*`."""
    output, generation = current_generation(out)
    values = read_head(generation.manifest).script
    facts = msgspec.structs.replace(facts_of_output(out), inside=True)
    rows = choose(names, facts.packages)
    results: dict[str, ProbeResult] = {}
    findings = []
    with scratch_directory(output.state) as work, progress.stage("probe") as stage:
        environment = process_environment(values, generation.path, os.environ)
        setting = Setting(
            python=generation.venv / "bin" / "python",
            environment=environment,
            work=work,
            slots=compiler_slots(environment, values.memory_per_job, values.memory_headroom),
            memory_per_slot=values.memory_per_job,
        )
        for ended in run_all(rows, setting, lambda running: stage.detail(", ".join(running))):
            results[ended.row.name] = result_of(ended)
            finding = finding_of(ended, facts)
            if finding is not None:
                findings.append(finding)
            if logs is not None:
                keep_log(ended.log, logs)
        stage.result = (
            f"{len(results)} probes for sm_{values.arch_number}, {setting.slots} compilers at a time"
        )
    ordered = [results[row.name] for row in probe_rows() if row.name in results]
    return probe_report(str(out), ordered, findings)
