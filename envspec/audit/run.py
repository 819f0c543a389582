"""The audit as a whole: the files of an environment, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from envspec.audit.binaries import Inventory, take_inventory
from envspec.audit.closure import Process, after, load
from envspec.audit.driver import read_driver_api
from envspec.audit.environment import Environment
from envspec.audit.gpu_findings import GpuFindings, read_gpu_inventory
from envspec.audit.link_findings import LinkFindings
from envspec.audit.linkage import Linkage, judge
from envspec.audit.loader import Loader
from envspec.audit.ownership import ownership_findings
from envspec.report.errors import EnvspecError
from envspec.report.findings import Finding, Report, Severity, report
from envspec.toolkit.stub import SONAME
from envspec.venv.owners import Owners
from envspec.venv.record import InstalledPackage


def audit(
    environment: Environment,
    subject: str,
    *,
    gpu_code: bool = False,
    hashes: bool = False,
    allowed: frozenset[str] = frozenset(),
    packages: tuple[InstalledPackage, ...] | None = None,
) -> Report:
    """Everything about an environment that its files tell. Errors of an allowed code become notes.

    `packages` are its RECORDs, if they were read already.
    """
    inventory = take_inventory(environment.venv)
    findings = [
        *link_findings(environment, inventory),
        *ownership_findings(environment, inventory.files, hashes=hashes, packages=packages),
    ]
    if gpu_code:
        findings += gpu_findings(environment, inventory)
    return report("audit", subject, (_allow(finding, allowed) for finding in findings))


def link_findings(environment: Environment, inventory: Inventory) -> Iterator[Finding]:
    """Does everything link?"""
    linkage = link_all(environment, inventory)
    owners = Owners(environment.site, environment.site_packages)
    api = read_driver_api(environment.cuda / "include")
    yield from LinkFindings(linkage, owners, api, environment.minimum_driver).all()


def gpu_findings(environment: Environment, inventory: Inventory) -> Iterator[Finding]:
    """Is there code for the profile's GPU?"""
    code = read_gpu_inventory(inventory, environment.site_packages)
    owners = Owners(environment.site, environment.site_packages)
    yield from GpuFindings(code, owners, environment.arch, environment.minimum_driver).all()


def link_all(environment: Environment, inventory: Inventory) -> Linkage:
    """Load every library of an environment on paper."""
    loader = Loader(environment.machine, environment.library_path, inventory.binaries)
    python = loader.open(os.path.realpath(environment.venv / "bin" / "python"))
    if python is None:
        raise EnvspecError(
            "python-missing",
            "the environment's interpreter is not there or cannot be read",
            where=str(environment.venv / "bin" / "python"),
            fix="build again",
        )
    process = after(Process(), [load(python, loader, Process())], visible=True)
    stub = loader.open(str(environment.cuda / "lib64" / "stubs" / "libcuda.so"))
    stand_ins = {SONAME: stub} if stub is not None else {}
    return judge(inventory, loader, process, stand_ins, environment.site_packages)


def _allow(finding: Finding, allowed: frozenset[str]) -> Finding:
    if finding.code in allowed and finding.severity is Severity.ERROR:
        return msgspec.structs.replace(finding, severity=Severity.NOTE, message=f"allowed: {finding.message}")
    return finding
