"""`envspec audit`: what is on disk, looked at."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envspec.audit.environment import of_manifest
from envspec.audit.run import audit
from envspec.output.directory import existing
from envspec.output.manifest import read_manifest
from envspec.report.errors import UsageError
from envspec.report.findings import Report
from envspec.report.progress import Progress


class AuditRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    out: Path
    gpu_code: bool = False
    hashes: bool = False
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
    manifest = read_manifest(generation.manifest)
    with progress.stage("audit") as stage:
        found = audit(
            of_manifest(generation, manifest),
            str(request.out),
            gpu_code=request.gpu_code,
            hashes=request.hashes,
            allowed=request.allowed,
        )
        stage.result = f"generation {generation.number} of {manifest.profile}"
    return found
