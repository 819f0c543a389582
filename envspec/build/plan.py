"""What a build is asked for, what it builds with, and what it comes to: the values that all stages share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from envspec import __version__
from envspec.activation.script import fingerprint
from envspec.activation.values import ScriptValues
from envspec.host.cxx import find_cxx
from envspec.host.machine import Host
from envspec.host.python import ChosenPython
from envspec.lock import Lock
from envspec.lock.ensure import LockPolicy
from envspec.output.directory import create, validate
from envspec.output.generations import Output
from envspec.output.manifest import BuildInputs
from envspec.profile import Profile, read_profile
from envspec.report.progress import Progress
from envspec.toolkit.layout import LAYOUT_VERSION
from envspec.uv.run import Uv
from envspec.venv.interpreter import choose_python


class BuildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Says what the command line asks for."""

    profile: Path
    out: Path
    python: str | None = None
    lock: LockPolicy = LockPolicy()
    offline: bool = False
    allowed: frozenset[str] = frozenset()
    """Codes whose errors do not stop the build."""
    expected: str | None = None
    """The environment digest that the result must have."""


class BuildResult(msgspec.Struct, frozen=True, kw_only=True):
    """Says what a build came to. `script` is what people source.

    `built` is false where there was nothing to do, or nothing was wanted. `generation` and `digest` are those of the current
    generation; they are 0 and empty where it was not looked at.
    """

    out: Path
    script: Path
    built: bool
    generation: int = 0
    digest: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Says what is known before anything is written, and stays the same through all stages."""

    request: BuildRequest
    profile: Profile
    python: ChosenPython
    cxx: Path
    output: Output
    uv: Uv
    environ: Mapping[str, str]

    def inheriting(self, descriptor: int) -> Plan:
        """Return the same plan, in which uv and the compilers keep a descriptor open."""
        return msgspec.structs.replace(self, uv=self.uv.inheriting(descriptor))

    def result(self, *, built: bool, generation: int = 0, digest: str = "") -> BuildResult:
        """Return what the build came to."""
        return BuildResult(
            out=self.output.root,
            script=self.output.script,
            built=built,
            generation=generation,
            digest=digest,
        )


def make_plan(request: BuildRequest, environ: Mapping[str, str], progress: Progress) -> Plan:
    """Read the profile, choose a Python and a compiler, and make the output directory if it is not there.

    Raises UsageError `profile-*`, `output-*` and `no-python`, ExternalError `output-unwritable` and what finding a compiler raises.
    """
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
    return Plan(
        request=request, profile=profile, python=python, cxx=cxx, output=output, uv=uv, environ=environ
    )


def build_inputs(plan: Plan, lock: Lock) -> BuildInputs:
    """Return everything that decides what the build gives."""
    # What this envspec would write into a script, apart from the toolchain, which the lock decides.
    values = ScriptValues(
        toolchain="0" * 16, arch=plan.profile.gpu.arch.dotted, memory_per_job=1, site_packages="lib"
    )
    return BuildInputs(
        profile=plan.profile.name,
        profile_digest=plan.profile.digest,
        lock_digest=lock.digest,
        python=plan.python.version,
        python_path=str(plan.python.path),
        machine=plan.python.machine,
        envspec=__version__,
        layout=LAYOUT_VERSION,
        allowed=tuple(sorted(plan.request.allowed)),
        script_digest=fingerprint(values),
    )
