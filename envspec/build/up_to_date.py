"""Is there anything to do? The current generation, compared with what a build would make now."""

from __future__ import annotations

import msgspec

from envspec.build.plan import BuildResult, Plan
from envspec.build.publish import require_digest
from envspec.lock.ensure import LockOutcome
from envspec.output.generations import Generation, Output
from envspec.output.manifest import BuildInputs, ManifestHead, read_head
from envspec.report.errors import EnvspecError
from envspec.report.findings import Severity
from envspec.report.progress import Progress


def find_up_to_date(
    plan: Plan, lock: LockOutcome, inputs: BuildInputs, progress: Progress
) -> BuildResult | None:
    """Return what a build without anything to do comes to; None where something is to be done.

    An upgrade has something to do whenever its lock installs other files, whatever is current. Raises StageError
    `digest-differs`.
    """
    if not lock.written:
        return plan.result(built=False) if lock.installs_the_same else None
    current = plan.output.current()
    head = _head(current) if current is not None else None
    if current is None or head is None or head.inputs != inputs:
        return None
    if _has_drifted(plan.output, current, progress):
        progress.note("the environment is not what was published (see envspec verify); building it again")
        return None
    require_digest(head.digest, plan.request.expected)
    return plan.result(built=False, generation=current.number, digest=head.digest)


def _head(generation: Generation) -> ManifestHead | None:
    try:
        return read_head(generation.manifest)
    except EnvspecError:
        return None


def _has_drifted(output: Output, generation: Generation, progress: Progress) -> bool:
    """Tell whether another generation is needed. What is wrong only around the files of this one is put right.

    Raises EnvspecError `output-foreign` where a file is in the place of an entry point.
    """
    # Not for a first build, which has nothing to compare.
    from envspec.integrity.drift import find_drift
    from envspec.integrity.drift_findings import drift_findings
    from envspec.integrity.places import Places, mend_places

    try:
        manifest, drift = find_drift(output, generation)
    except EnvspecError:
        return True
    if mended := mend_places(output, drift.places):
        progress.note(f"put right: {', '.join(mended)}")
    drift = msgspec.structs.replace(drift, places=Places(owners=drift.places.owners))
    return any(finding.severity is Severity.ERROR for finding in drift_findings(manifest, drift))
