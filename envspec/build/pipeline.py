"""The story of a build: its stages in order, each taking what the one before it gave."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from envspec import __version__
from envspec.activation.process import process_environment
from envspec.activation.script import fingerprint, render_script
from envspec.activation.startup_pth import write_pth_files
from envspec.activation.values import ScriptValues
from envspec.build.log import BuildLog, build_log
from envspec.build.publish import build_manifest, publish, require_digest
from envspec.fs import remove_tree
from envspec.host.cxx import find_cxx
from envspec.host.machine import Host
from envspec.host.python import ChosenPython
from envspec.lock import Lock, read_lock
from envspec.lock.ensure import LockMode, describe_lock, ensure_lock, lock_notes
from envspec.lock.selection import needed_files, needed_packages
from envspec.lock.text import write_lock
from envspec.output.cleanup import new_generation
from envspec.output.directory import create, validate
from envspec.output.generations import Generation, Output
from envspec.output.lock import locked
from envspec.output.manifest import BuildInputs, ManifestHead, read_head
from envspec.profile import Profile, read_profile
from envspec.report.errors import EnvspecError, StageError
from envspec.report.findings import Finding, Report, Severity, counted
from envspec.report.progress import Progress
from envspec.report.text import count_findings, render_finding
from envspec.toolkit.layout import LAYOUT_VERSION
from envspec.toolkit.toolchain import Toolchain, lay_toolchain
from envspec.uv.run import Uv
from envspec.venv.disk_space import require_disk_space
from envspec.venv.install import Venv, install
from envspec.venv.interpreter import choose_python


class BuildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    profile: Path
    out: Path
    python: str | None = None
    lock_mode: LockMode = LockMode.UPDATE
    offline: bool = False
    allowed: frozenset[str] = frozenset()
    """Codes whose errors do not stop the build."""
    expected: str | None = None
    """The environment digest that the result must have."""
    lock: Lock | None = None
    """A lock that is not on disk yet: it is written at the very end, just before the environment becomes current."""


class BuildResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a build came to. `built` is False where there was nothing to do."""

    out: Path
    script: Path
    generation: int
    digest: str
    built: bool


def build(request: BuildRequest, progress: Progress, environ: Mapping[str, str] | None = None) -> BuildResult:
    """Turn a profile into an environment at `request.out`.

    Whatever stage fails, the environment that was there before stays as it was. What was done is told in the output's log.
    """
    environ = os.environ if environ is None else environ
    with build_log(environ, progress) as (log, logged):
        return _build(request, log, logged, environ)


def _build(
    request: BuildRequest, log: BuildLog, progress: Progress, environ: Mapping[str, str]
) -> BuildResult:
    uv = Uv(base_env=environ, offline=request.offline)
    with progress.stage("profile") as stage:
        profile = read_profile(request.profile)
        cxx = Path(find_cxx(Host(environ=environ)))
        validate(request.out)
        python = choose_python(profile, uv, Path("/"), wanted=request.python)
        output = create(request.out)
        stage.result = f"{profile.name}: {profile.gpu.arch.sm}, Python {python.version}, {cxx}"
    if not python.headers:
        progress.note(
            f"warning: {python.path} has no Python.h; torch and triton cannot compile extensions with it"
        )
    with locked(
        output, lambda who: progress.note(f"waiting for {who}, which builds into {output.root}")
    ) as descriptor:
        uv = uv.inheriting(descriptor)
        with log.kept_in(output, request.out):
            result = _Build(request, profile, python, cxx, uv, output, progress, environ).run()
        if result.built:
            log.save(output)
        return result


class _Build:
    """One build under the output's lock: what stays the same through the stages."""

    def __init__(
        self,
        request: BuildRequest,
        profile: Profile,
        python: ChosenPython,
        cxx: Path,
        uv: Uv,
        output: Output,
        progress: Progress,
        environ: Mapping[str, str],
    ) -> None:
        self.lock_mode = request.lock_mode
        self.given_lock = request.lock
        self.allowed = request.allowed
        self.expected = request.expected
        self.profile = profile
        self.python = python
        self.cxx = cxx
        self.uv = uv
        self.output = output
        self.progress = progress
        self.environ = environ

    def run(self) -> BuildResult:
        lock = self.lock()
        inputs = self.inputs(lock)
        current = self.output.current()
        if current is not None and (head := self.intact(current, inputs)) is not None:
            require_digest(head.digest, self.expected)
            return self.result(current, head.digest, built=False)
        checked = self.check(lock)
        with new_generation(self.output) as generation:
            venv = self.install(lock, generation)
            toolchain = self.toolkit(venv, generation)
            values = self.script(venv, toolchain, generation)
            audited = self.audit(lock, venv, values, generation)
            self.smoke(values, generation)
            digest = self.publish(
                lock, inputs, venv, toolchain, values, (*checked.findings, *audited.findings), generation
            )
        return self.result(generation, digest, built=True)

    def result(self, generation: Generation, digest: str, *, built: bool) -> BuildResult:
        return BuildResult(
            out=self.output.root,
            script=self.output.root / generation.script.name,
            generation=generation.number,
            digest=digest,
            built=built,
        )

    def lock(self) -> Lock:
        if self.given_lock is not None:
            return self.given_lock
        with self.progress.stage("lock") as stage:
            uv = self.uv.with_reporter(stage.detail)
            outcome = ensure_lock(self.profile, uv, self.python.path, self.lock_mode)
            needed = needed_packages(outcome.lock, self.python)
            locked = len(outcome.lock.packages)
            total = f" of {locked}" if locked != len(needed) else ""
            stage.result = f"{len(needed)}{total} packages, {describe_lock(outcome)}"
        for line in lock_notes(outcome):
            self.progress.note(line)
        return outcome.lock

    def inputs(self, lock: Lock) -> BuildInputs:
        return BuildInputs(
            profile=self.profile.name,
            profile_digest=self.profile.digest,
            lock_digest=lock.digest,
            python=self.python.version,
            python_path=str(self.python.path),
            machine=self.python.machine,
            envspec=__version__,
            layout=LAYOUT_VERSION,
            allowed=tuple(sorted(self.allowed)),
            script_digest=self.script_digest(),
        )

    def script_digest(self) -> str:
        """What this envspec would write into the script, apart from the toolchain, which the lock decides."""
        values = ScriptValues(
            toolchain="0" * 16, arch=self.profile.gpu.arch.dotted, memory_per_job=1, site_packages="lib"
        )
        return fingerprint(values)

    def intact(self, generation: Generation, inputs: BuildInputs) -> ManifestHead | None:
        """The current generation's manifest, if it was made from the same inputs and nothing in it has changed since."""
        try:
            head = read_head(generation.manifest)
        except EnvspecError:
            return None
        if head.inputs != inputs:
            return None
        if not (generation.venv / "bin" / "python").exists() or self.has_drifted(generation):
            self.progress.note(
                "the environment is not what was published (see envspec verify); building it again"
            )
            return None
        return head

    def has_drifted(self, generation: Generation) -> bool:
        from envspec.integrity.drift_findings import verify
        from envspec.report.findings import Severity

        try:
            found = verify(self.output, generation)
        except EnvspecError:
            return True
        return any(f.severity is Severity.ERROR for f in found.findings)

    def check(self, lock: Lock) -> Report:
        # A third of all imports, which a build that has nothing to do need not wait for.
        from envspec.check.facts import CheckInput
        from envspec.check.run import check_lock
        from envspec.lock.targets import Target

        with self.progress.stage("check") as stage:
            target = Target(self.python.version, self.python.machine)
            found = check_lock(
                CheckInput(self.profile, lock),
                target,
                self.uv,
                self.python.path,
                self.environ,
                # --frozen asks for exactly this: the lock as it is.
                allowed=self.allowed | ({"lock-outdated"} if self.lock_mode is LockMode.FROZEN else set()),
                on_progress=stage.detail,
            )
            stage.result = count_findings(found)
        for finding in found.findings:
            # What the check could not read before the download, the audit of this same build decides on the files.
            decided_later = finding.severity is Severity.UNKNOWN and finding.code == "torch-abi"
            if finding.severity is not Severity.NOTE and not decided_later:
                self.progress.note(render_finding(finding))
        if found.errors:
            codes = sorted({f.code for f in found.errors})
            raise StageError(
                "check-failed",
                f"the locked set cannot work: {', '.join(codes)}",
                where=str(self.profile.path),
                fix=f"envspec check --fix {shlex.quote(str(self.profile.path))}, or accept it: --allow {codes[0]}",
            )
        return found

    def install(self, lock: Lock, generation: Generation) -> Venv:
        with self.progress.stage("install") as stage:
            uv = self.uv.with_reporter(stage.detail)
            files = needed_files(lock, self.python)
            require_disk_space(files, self.output.root, uv, self.progress.note)
            venv = install(self.profile, lock, self.python, uv, generation.venv, self.output.work / "install")
            count = sum(len(p.rows) for p in venv.packages)
            stage.result = f"{len(venv.packages)} packages, {count} files"
            if venv.winners:
                stage.result += f", {counted(len(venv.winners), 'file conflict')} settled as declared"
        return venv

    def toolkit(self, venv: Venv, generation: Generation) -> Toolchain:
        with self.progress.stage("toolkit") as stage:
            laid = lay_toolchain(
                venv.packages, venv.site_packages, self.output.toolchains_dir, self.python.machine
            )
            generation.cuda.symlink_to(f"../../toolchains/{laid.path.name}")
            tree = laid.tree
            stage.result = f"{tree.name}: {len(tree.files)} files of {len(tree.owners())} packages"
            stage.result += f", {len(laid.put_back)} of them put back" if laid.put_back else ""
        return laid

    def script(self, venv: Venv, toolchain: Toolchain, generation: Generation) -> ScriptValues:
        with self.progress.stage("script") as stage:
            values = ScriptValues(
                toolchain=toolchain.path.name,
                arch=self.profile.gpu.arch.dotted,
                site_packages=venv.site_packages.relative_to(venv.path).as_posix(),
                memory_per_job=self.profile.memory_per_job,
                memory_headroom=self.profile.memory_headroom,
                variables=self.profile.environment,
                prompt=self.profile.name,
            )
            generation.script.write_text(render_script(values), encoding="utf-8")
            write_pth_files(venv.site_packages)
            stage.result = generation.script.name
        return values

    def audit(self, lock: Lock, venv: Venv, values: ScriptValues, generation: Generation) -> Report:
        from envspec.audit.environment import describe
        from envspec.audit.run import audit
        from envspec.venv.owners import Owners

        with self.progress.stage("audit") as stage:
            environment = describe(
                generation,
                values,
                machine=self.python.machine,
                arch=self.profile.gpu.arch,
                minimum_driver=self.profile.gpu.minimum_driver,
            )
            files = venv.inventory.rows
            owners = Owners(
                values.site_packages,
                ((row.path, row.owner) for row in files),
                ((package.name, package.version) for package in venv.packages),
            )
            found = audit(
                environment, str(self.output.root), (row.path for row in files), owners, allowed=self.allowed
            )
            stage.result = count_findings(found)
        for finding in found.findings:
            if finding.severity is not Severity.NOTE:
                self.progress.note(render_finding(finding))
        if found.errors:
            codes = sorted({f.code for f in found.errors})
            raise StageError(
                "audit-failed",
                f"what was installed cannot work: {', '.join(codes)}",
                where=str(self.profile.path),
                fix=f"mend the profile as the findings say, or accept it: --allow {codes[0]}",
            )
        return found

    def smoke(self, values: ScriptValues, generation: Generation) -> None:
        from envspec.build.smoke_test import smoke

        with self.progress.stage("smoke") as stage:
            environment = process_environment(values, generation.path, self.environ)
            cuda_home = self.output.toolchains_dir / values.toolchain
            found = smoke(
                self.profile.gpu.arch,
                cuda_home,
                self.cxx,
                environment,
                self.output.work / "smoke",
                self.uv.inherit_fds,
            )
            cuda = [n for n in found.needed if n.startswith("libcuda")]
            stage.result = f"{self.profile.gpu.arch.sm} kernel compiled and linked, needs {', '.join(cuda)}"

    def publish(
        self,
        lock: Lock,
        inputs: BuildInputs,
        venv: Venv,
        toolchain: Toolchain,
        values: ScriptValues,
        findings: tuple[Finding, ...],
        generation: Generation,
    ) -> str:
        with self.progress.stage("publish") as stage:
            stage.detail("building the manifest")
            built = build_manifest(
                profile=self.profile,
                lock=lock,
                python=self.python,
                inputs=inputs,
                venv=venv,
                tree=toolchain.tree,
                values=values,
                findings=findings,
                uv_version=self.uv.version(),
                generation=generation,
                output=self.output,
            )
            require_digest(built.manifest.digest, self.expected)
            with self.lock_written():
                publish(built, generation, self.output)
            remove_tree(self.output.work)
            stage.result = f"generation {generation.number} is current, {built.manifest.digest[:19]}"
        return built.manifest.digest

    @contextlib.contextmanager
    def lock_written(self) -> Iterator[None]:
        """A lock that came with the request is on disk inside, and the old one again if it fails there."""
        if self.given_lock is None:
            yield
            return
        path = self.profile.lock_path
        old = read_lock(path)
        write_lock(path, self.given_lock)
        try:
            yield
        except BaseException:
            if old is not None:
                write_lock(path, old)
            else:
                path.unlink(missing_ok=True)
            raise
