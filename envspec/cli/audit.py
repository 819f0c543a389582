"""`envspec audit`: what is on disk, looked at."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envspec.audit.environment import of_manifest
from envspec.audit.run import audit
from envspec.integrity.drift import files_now, find_drift, owners_now
from envspec.integrity.drift_findings import drift_findings
from envspec.output.claim import existing
from envspec.report.errors import UsageError
from envspec.report.findings import Report
from envspec.report.progress import Progress


class AuditRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    out: Path
    gpu_code: bool = False
    check_contents: bool = False
    allowed: frozenset[str] = frozenset()


def run_audit(request: AuditRequest, progress: Progress) -> Report:
    """Audit the current generation of an output directory.

    Raises UsageError `output-missing` or `output-unbuilt`, EnvspecError `manifest-damaged`.
    """
    output = existing(request.out)
    generation = output.current()
    if generation is None:
        raise UsageError(
            "output-unbuilt",
            f"{request.out} holds no finished environment",
            fix="build it: envspec build PROFILE",
        )
    with progress.stage("audit") as stage:
        manifest, drift = find_drift(
            output, generation, check_contents=request.check_contents, detail=stage.detail
        )
        found = audit(
            of_manifest(generation, manifest),
            str(request.out),
            files_now(manifest, drift),
            owners_now(manifest, drift),
            gpu_code=request.gpu_code,
            drift=drift_findings(manifest, drift),
            allowed=request.allowed,
        )
        stage.result = f"generation {generation.number} of {manifest.profile}"
    return found
