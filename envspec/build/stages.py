"""The stages of a build between its plan and its publication: what each is given, what it says, and what it gives.

What a stage does is in the room that it is named after. Check, audit and smoke are imported when they run: a build that
has nothing to do need not wait for a third of all imports.
"""

from __future__ import annotations

from envspec.activation.process import process_environment
from envspec.activation.script import render_script
from envspec.activation.startup_pth import write_pth_files
from envspec.activation.values import ScriptValues
from envspec.build.plan import Plan
from envspec.lock import Lock
from envspec.lock.ensure import LockMode, LockOutcome, describe_lock, ensure_lock, lock_notes
from envspec.lock.selection import needed_files, needed_packages
from envspec.output.generations import Generation
from envspec.report.findings import FailedReport, Report, Severity, counted
from envspec.report.progress import Progress
from envspec.report.text import count_findings
from envspec.toolkit.toolchain import Toolchain, lay_toolchain
from envspec.venv.disk_space import require_disk_space
from envspec.venv.install import Venv, install


def lock_packages(plan: Plan, progress: Progress) -> LockOutcome:
    """Have a lock that matches the profile, as far as the request's policy allows."""
    with progress.stage("lock") as stage:
        uv = plan.uv.with_reporter(stage.detail)
        outcome = ensure_lock(plan.profile, uv, plan.python.path, plan.request.lock)
        needed, locked = len(needed_packages(outcome.lock, plan.python)), len(outcome.lock.packages)
        total = f" of {locked}" if locked != needed else ""
        stage.result = f"{needed}{total} packages, {describe_lock(outcome)}"
    for line in lock_notes(outcome):
        progress.note(line)
    return outcome


def check_packages(plan: Plan, lock: Lock, progress: Progress) -> Report:
    """Find out whether the locked set can work. Raises FailedReport `check-failed`."""
    from envspec.check.facts import CheckInput
    from envspec.check.run import check_lock, require_working
    from envspec.lock.targets import Target

    policy, allowed = plan.request.lock, plan.request.allowed
    with progress.stage("check") as stage:
        found = check_lock(
            CheckInput(plan.profile, lock),
            Target(plan.python.version, plan.python.machine),
            plan.uv,
            plan.python.path,
            plan.environ,
            # --frozen asks for exactly this: the lock as it is.
            allowed=allowed | {"lock-outdated"} if policy.mode is LockMode.FROZEN else allowed,
            on_progress=stage.detail,
        )
        stage.result = count_findings(found)
    # What the check could not read before the download, the audit of this same build decides on the files.
    _show(found, progress, except_unknown="torch-abi")
    require_working(found, plan.profile.path, upgraded=policy.upgrade is not None)
    return found


def install_packages(plan: Plan, lock: Lock, generation: Generation, progress: Progress) -> Venv:
    """Make the venv of a generation."""
    with progress.stage("install") as stage:
        uv = plan.uv.with_reporter(stage.detail)
        require_disk_space(needed_files(lock, plan.python), plan.output.root, uv, progress.note)
        work = plan.output.work / "install"
        settle = "file-conflict" in plan.request.allowed
        venv = install(plan.profile, lock, plan.python, uv, generation.venv, work, settle=settle)
        files = sum(len(package.rows) for package in venv.packages)
        stage.result = f"{len(venv.packages)} packages, {files} files"
        if venv.winners:
            stage.result += f", {counted(len(venv.winners), 'file conflict')} settled as declared"
        if venv.misrecorded:
            stage.result += (
                f", {counted(len(venv.misrecorded), 'file')} as in the wheel and not as its RECORD says"
            )
    return venv


def lay_out_toolkit(plan: Plan, venv: Venv, generation: Generation, progress: Progress) -> Toolchain:
    """Have the CUDA_HOME of the installed packages, and link the generation to it."""
    with progress.stage("toolkit") as stage:
        toolchains = plan.output.toolchains_dir
        toolchain = lay_toolchain(venv.packages, venv.site_packages, toolchains, plan.python.machine)
        generation.cuda.symlink_to(f"../../{toolchains.name}/{toolchain.path.name}")
        tree = toolchain.tree
        stage.result = f"{tree.name}: {len(tree.files)} files of {len(tree.owners())} packages"
        if toolchain.put_back:
            stage.result += f", {len(toolchain.put_back)} of them put back"
    return toolchain


def write_script(
    plan: Plan, venv: Venv, toolchain: Toolchain, generation: Generation, progress: Progress
) -> ScriptValues:
    """Write the environment script, and tie the venv's interpreter to the generation."""
    with progress.stage("script") as stage:
        values = ScriptValues(
            toolchain=toolchain.path.name,
            arch=plan.profile.gpu.arch.dotted,
            site_packages=venv.site_packages.relative_to(venv.path).as_posix(),
            memory_per_job=plan.profile.memory_per_job,
            memory_headroom=plan.profile.memory_headroom,
            variables=plan.profile.environment,
            prompt=plan.profile.name,
        )
        generation.script.write_text(render_script(values), encoding="utf-8")
        write_pth_files(venv.site_packages)
        stage.result = generation.script.name
    return values


def audit_files(
    plan: Plan, venv: Venv, script: ScriptValues, generation: Generation, progress: Progress
) -> Report:
    """Find out whether everything that was installed links. Raises FailedReport `audit-failed`."""
    from envspec.audit.environment import describe
    from envspec.audit.run import audit
    from envspec.venv.owners import Owners

    with progress.stage("audit") as stage:
        files = venv.inventory.rows
        environment = describe(
            generation,
            script,
            machine=plan.python.machine,
            arch=plan.profile.gpu.arch,
            minimum_driver=plan.profile.gpu.minimum_driver,
        )
        owners = Owners(
            script.site_packages,
            ((row.path, row.owner) for row in files),
            ((package.name, package.version) for package in venv.packages),
        )
        paths = (row.path for row in files)
        found = audit(environment, str(plan.output.root), paths, owners, allowed=plan.request.allowed)
        stage.result = count_findings(found)
    _show(found, progress)
    if found.errors:
        raise FailedReport(
            "audit-failed",
            "what was installed cannot work",
            found,
            where=str(plan.profile.path),
            fix=f"fix the profile as the findings say, or accept it: --allow {found.error_codes[0]}",
        )
    return found


def compile_kernel(
    plan: Plan, toolchain: Toolchain, script: ScriptValues, generation: Generation, progress: Progress
) -> None:
    """Compile and link one kernel in the new environment. Raises StageError `smoke-*`."""
    from envspec.build.smoke_test import Compilers, smoke_test

    with progress.stage("smoke") as stage:
        compilers = Compilers(
            cuda_home=toolchain.path,
            cxx=plan.cxx,
            environment=process_environment(script, generation.path, plan.environ),
            inherit_fds=plan.uv.inherit_fds,
        )
        needed = smoke_test(plan.profile.gpu.arch, compilers, plan.output.work / "smoke")
        cuda = [name for name in needed if name.startswith("libcuda")]
        stage.result = f"{plan.profile.gpu.arch.sm} kernel compiled and linked, needs {', '.join(cuda)}"


def _show(found: Report, progress: Progress, *, except_unknown: str = "") -> None:
    """Show what a report warns of. Its errors end the build and are shown with the error that does."""
    for finding in found.findings:
        unknown = finding.severity is Severity.UNKNOWN and finding.code != except_unknown
        if unknown or finding.severity is Severity.WARNING:
            progress.note(finding)
