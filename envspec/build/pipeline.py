"""The story of a build: its nine stages in order, each taking what those before it gave.

    profile ─> Plan ─lock─> LockOutcome ─check─> Report
                                  │
                               install─> Venv ─toolkit─> Toolchain ─script─> ScriptValues ─audit─> Report ─smoke─> ok
                                                                                                                   │
                                                                            out/ <─switch─ Manifest <──publish─────┘

`upgrade` is the same build with another lock policy and a question: nothing of the old lock and the old environment is
touched before the new environment becomes current.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial

from envspec.build.log import build_log
from envspec.build.plan import BuildRequest, BuildResult, Plan, build_inputs, make_plan
from envspec.build.publish import BuiltGeneration, publish_generation
from envspec.build.stages import (
    audit_files,
    check_packages,
    compile_kernel,
    install_packages,
    lay_out_toolkit,
    lock_packages,
    write_script,
)
from envspec.build.up_to_date import find_up_to_date
from envspec.lock.model import LockChange
from envspec.output.cleanup import new_generation
from envspec.output.lock import locked
from envspec.report.progress import Progress

Confirm = Callable[[tuple[LockChange, ...]], bool]
"""Is told what a lock changes, and answers whether to go on."""


def build(
    request: BuildRequest,
    progress: Progress,
    confirm: Confirm = lambda changes: True,
    environ: Mapping[str, str] | None = None,
) -> BuildResult:
    """Turn a profile into an environment at `request.out`, unless it is there already or `confirm` says no.

    Whatever stage fails, the environment that was there before stays as it was. What was done is told in the output's log.
    """
    environ = os.environ if environ is None else environ
    with build_log(environ, progress) as (log, logged):
        plan = make_plan(request, environ, logged)
        with locked(plan.output, partial(_tell_waiting, plan, logged)) as descriptor:
            with log.kept_in(plan.output, request.out):
                result = _build(plan.inheriting(descriptor), confirm, logged)
            if result.built:
                log.save(plan.output)
    return result


def _build(plan: Plan, confirm: Confirm, progress: Progress) -> BuildResult:
    lock = lock_packages(plan, progress)
    inputs = build_inputs(plan, lock.lock)
    finished = find_up_to_date(plan, lock, inputs, progress)
    if finished is not None:
        return finished
    checked = check_packages(plan, lock.lock, progress)
    if not confirm(lock.changes):
        return plan.result(built=False)
    with new_generation(plan.output) as generation:
        venv = install_packages(plan, lock.lock, generation, progress)
        toolchain = lay_out_toolkit(plan, venv, generation, progress)
        script = write_script(plan, venv, toolchain, generation, progress)
        audited = audit_files(plan, venv, script, generation, progress)
        compile_kernel(plan, toolchain, script, generation, progress)
        built = BuiltGeneration(
            generation=generation,
            inputs=inputs,
            lock=lock,
            venv=venv,
            toolchain=toolchain,
            script=script,
            findings=(*checked.findings, *audited.findings),
        )
        digest = publish_generation(plan, built, progress)
    return plan.result(built=True, generation=generation.number, digest=digest)


def _tell_waiting(plan: Plan, progress: Progress, who: str) -> None:
    progress.note(f"waiting for {who}, which builds into {plan.output.root}")
