"""Compilers: nvcc and triton's ptxas know the GPU, and nvcc accepts this machine's C++ compiler."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from envspec.check.facts import Gpu, Selection, ToolkitReleases
from envspec.check.rules import RULES
from envspec.data.architectures import find_known
from envspec.data.compatibility import ptxas_of_triton
from envspec.host.cxx import HostCompiler, unaccepted
from envspec.report.findings import Finding, error, unknown


@RULES.rule("nvcc can compile for the profile's GPU architecture.")
def arch_nvcc(toolkit: ToolkitReleases, gpu: Gpu) -> Iterator[Finding]:
    nvcc, known = toolkit.release("nvcc"), find_known(gpu.arch)
    if nvcc is None or known is None:
        return
    since = Version(known.since_cuda)
    if nvcc < (since.major, since.minor):
        yield error(
            "arch-nvcc",
            toolkit.packages["nvcc"],
            f"nvcc {toolkit.versions['nvcc']} does not know {gpu.arch.sm}: CUDA {since} is the first that does",
            fix=f"raise cuda.toolkit to {since} or newer",
        )


@RULES.rule("The ptxas inside triton can assemble for the profile's GPU architecture.")
def arch_triton(selection: Selection, gpu: Gpu) -> Iterator[Finding]:
    triton, known = selection.version("triton"), find_known(gpu.arch)
    if triton is None or known is None:
        return
    ptxas = ptxas_of_triton(str(triton))
    since = Version(known.since_cuda)
    if ptxas is None:
        yield unknown(
            "arch-triton",
            "triton",
            f"it is not known which ptxas triton {triton} brings",
            dependency_paths=selection.why("triton"),
            fix="look: TRITON's bin/ptxas --version",
        )
    elif Version(ptxas) < since:
        yield error(
            "arch-triton",
            "triton",
            f"triton {triton} brings ptxas {ptxas}, which does not know {gpu.arch.sm} (CUDA {since} is the first)",
            dependency_paths=selection.why("triton"),
            fix="set TRITON_PTXAS_PATH to the toolkit's ptxas in [environment], or pin a newer triton",
        )


@RULES.rule("This host's C++ compiler is one that nvcc accepts.")
def host_compiler(toolkit: ToolkitReleases, compiler: HostCompiler) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    if nvcc is not None:
        yield from unaccepted(compiler, compiler.path, nvcc)
