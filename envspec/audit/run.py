"""The audit as a whole: the files of an environment, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from envspec.audit.binaries import VenvFiles, read_binaries
from envspec.audit.closure import Process, after, load
from envspec.audit.driver import read_driver_api
from envspec.audit.environment import Environment
from envspec.audit.gpu_findings import GpuFindings, read_gpu_inventory
from envspec.audit.link_findings import LinkFindings
from envspec.audit.linkage import Linkage, link_statically
from envspec.audit.loader import Loader
from envspec.audit.reach import Reach
from envspec.report.findings import Finding, Report, allow, error, report
from envspec.toolkit.stub import SONAME
from envspec.venv.owners import Owners


def audit(
    environment: Environment,
    subject: str,
    names: Iterable[str],
    owners: Owners,
    *,
    gpu_code: bool = False,
    drift: Iterable[Finding] = (),
    allowed: frozenset[str] = frozenset(),
) -> Report:
    """Report what the files of an environment tell: whether they link, and with `gpu_code` what is compiled for the GPU.

    `names` are all files of its venv, relative to it. `drift` is what `verify` finds in it. Errors of an allowed code become
    notes.
    """
    files = read_binaries(environment.venv, names)
    findings = [*drift, *link_findings(environment, files, owners)]
    if gpu_code:
        findings += gpu_findings(environment, files, owners)
    return report("audit", subject, allow(findings, allowed))


def link_findings(environment: Environment, files: VenvFiles, owners: Owners) -> Iterator[Finding]:
    """Find out whether everything links."""
    linkage = link_all(environment, files)
    if linkage is None:
        yield error(
            "python-missing",
            "python",
            "the environment's interpreter is not there or cannot be read, so nothing can be linked with it",
            evidence=[str(environment.venv / "bin" / "python")],
            fix="install the Python that it was built with again, or build again",
        )
        return
    api = read_driver_api(environment.cuda / "include")
    reach = Reach(linkage, owners, environment.site, environment.minor)
    yield from LinkFindings(linkage, owners, api, environment.minimum_driver, reach).all()


def gpu_findings(environment: Environment, files: VenvFiles, owners: Owners) -> Iterator[Finding]:
    """Find out whether there is code for the profile's GPU."""
    code = read_gpu_inventory(files, environment.site_packages)
    yield from GpuFindings(code, owners, environment.arch, environment.minimum_driver).all()


def link_all(environment: Environment, files: VenvFiles) -> Linkage | None:
    """Link every library of an environment statically; None where there is no interpreter to load them."""
    loader = Loader(environment.machine, environment.library_path, files.binaries)
    python = loader.open(os.path.realpath(environment.venv / "bin" / "python"))
    if python is None:
        return None
    process = after(Process(), [load(python, loader, Process())], visible=True)
    stub = loader.open(str(environment.cuda / "lib64" / "stubs" / "libcuda.so"))
    stand_ins = {SONAME: stub} if stub is not None else {}
    return link_statically(files, loader, process, stand_ins, environment.site_packages)
