"""`envspec probe`: the probes of the current generation of an output."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from envspec.activation.process import process_environment
from envspec.cli.diagnose import facts_for
from envspec.output.directory import current_generation
from envspec.output.manifest import read_head
from envspec.probe.reporting import ProbeReport, ProbeResult, finding_of, probe_report, result_of
from envspec.probe.rows import choose, probe_rows
from envspec.probe.running import Setting, run_all
from envspec.report.errors import WorldError
from envspec.report.progress import Progress


class ProbeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for. `logs`: keep what each probe printed there."""

    out: Path
    names: tuple[str, ...] = ()
    logs: Path | None = None


def run_probe(request: ProbeRequest, progress: Progress) -> ProbeReport:
    """Run the probes. Raises UsageError `output-*`, `probe-*`."""
    output, generation = current_generation(request.out)
    values = read_head(generation.manifest).script
    facts = msgspec.structs.replace(facts_for(request.out), inside=True)
    rows = choose(request.names, facts.packages)
    results: dict[str, ProbeResult] = {}
    findings = []
    with throw_away(output.state) as work, progress.stage("probe") as stage:
        environment = process_environment(values, generation.path, os.environ)
        setting = Setting(
            python=generation.venv / "bin" / "python",
            environment=environment,
            work=work,
            slots=_slots(environment, values.memory_per_job),
            memory_per_slot=values.memory_per_job,
        )
        for ended in run_all(rows, setting, lambda names: stage.detail(", ".join(names))):
            results[ended.row.name] = result_of(ended)
            finding = finding_of(ended, facts)
            if finding is not None:
                findings.append(finding)
            if request.logs is not None:
                _keep(ended.log, request.logs)
        stage.result = (
            f"{len(results)} probes for sm_{values.arch_number}, {setting.slots} compilers at a time"
        )
    ordered = [results[row.name] for row in probe_rows() if row.name in results]
    return probe_report(str(request.out), ordered, findings)


def _slots(environment: dict[str, str], memory_per_job: int) -> int:
    """As many compilers as MAX_JOBS says; a user's own value counts if it is a number."""
    from envspec.host.memory import max_jobs

    given = environment.get("MAX_JOBS", "")
    return (
        int(given)
        if given.isascii() and given.isdigit() and 0 < int(given) < 1024
        else max_jobs(memory_per_job)
    )


def _keep(log: Path, directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, directory / log.name)
    except OSError as error:
        raise WorldError(
            "logs-unwritable", f"cannot write to {directory}: {error.strerror}", where="--logs",
            fix="name a directory that you may write to",
        ) from None  # fmt: skip


@contextlib.contextmanager
def throw_away(state: Path) -> Iterator[Path]:
    """A directory beside the real JIT caches, so that what is wrong with their disk shows; the system's if that fails.

    A probe that was killed leaves its directory; the next one removes it.
    """
    with contextlib.suppress(OSError):
        for left in state.glob("probe-*-*"):
            owner = left.name.split("-")[1]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                shutil.rmtree(left, ignore_errors=True)
    prefix = f"probe-{os.getpid()}-"
    try:
        work = Path(tempfile.mkdtemp(prefix=prefix, dir=state))
    except OSError:
        work = Path(tempfile.mkdtemp(prefix=f"envspec-{prefix}"))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
