"""One CUDA toolkit: its parts belong together, it is complete, and it knows the GPU and the host compiler."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from envspec.check.facts import CheckInput, Gpu, Selection, ToolkitReleases
from envspec.check.rules import RULES
from envspec.data.architectures import find_known
from envspec.data.compatibility import compiler_limit, ptxas_of_triton
from envspec.data.toolkit_components import components, package_of
from envspec.host.cxx import HostCompiler
from envspec.report.findings import Finding, error, note, unknown, warning
from envspec.wheels.file import WheelLooks


def _set_fix(origin_has_cuda: bool, release: tuple[int, int] | None) -> str:
    if release is None:
        return "add a [cuda] section to the profile"
    if origin_has_cuda:
        return "remove the pin of this package from the profile, so that it comes from cuda.toolkit"
    return f'name the whole toolkit: [cuda] toolkit = "{release[0]}.{release[1]}.x"'


@RULES.rule("nvcc, crt and nvvm are of one CUDA release.")
def toolkit_mixed(toolkit: ToolkitReleases, selection: Selection, given: CheckInput) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    if nvcc is None:
        return
    for part in ("crt", "nvvm"):
        release = toolkit.release(part)
        if release is not None and release != nvcc:
            package = toolkit.packages[part]
            yield error(
                "toolkit-mixed",
                package,
                f"{package} {toolkit.versions[part]} does not belong to the CUDA {nvcc[0]}.{nvcc[1]} compiler",
                evidence=(
                    f"{toolkit.packages['nvcc']} {toolkit.versions['nvcc']}",
                    f"{package} {toolkit.versions[part]}",
                ),
                chain=selection.why(package),
                fix=_set_fix(given.profile.cuda is not None, nvcc),
            )


@RULES.rule("The run-time library's headers are of the compiler's minor release.")
def toolkit_headers(toolkit: ToolkitReleases, selection: Selection, given: CheckInput) -> Iterator[Finding]:
    nvcc, runtime = toolkit.release("nvcc"), toolkit.release("cudart")
    if nvcc is None or runtime is None or nvcc == runtime:
        return
    package = toolkit.packages["cudart"]
    yield error(
        "toolkit-headers",
        package,
        f"{package} {toolkit.versions['cudart']} brings headers of CUDA {runtime[0]}.{runtime[1]} "
        f"to a CUDA {nvcc[0]}.{nvcc[1]} compiler",
        evidence=(
            f"{toolkit.packages['nvcc']} {toolkit.versions['nvcc']}",
            f"{package} {toolkit.versions['cudart']}",
        ),
        chain=selection.why(package),
        fix=_set_fix(given.profile.cuda is not None, nvcc),
    )


@RULES.rule("Every part that just-in-time compilers need is in the set.")
def toolkit_incomplete(toolkit: ToolkitReleases, selection: Selection) -> Iterator[Finding]:
    for row in components():
        if not row.jit or row.component in toolkit.versions:
            continue
        if row.component in ("crt", "nvvm") and _bundled_in_nvcc(toolkit):
            continue  # CUDA 12 wheels of nvcc hold both
        missing = f"no package brings {row.component}: {row.why}"
        if row.component == "cccl" and "flashinfer-python" in selection.chosen:
            yield note(
                "toolkit-incomplete",
                row.package,
                "no cccl package: flashinfer's bundled copy of the headers is laid over",
                chain=selection.why("flashinfer-python"),
            )
            continue
        yield error(
            "toolkit-incomplete",
            row.package,
            missing,
            fix=f'add "{row.component}" to cuda.components (and a [cuda] section, if there is none)',
        )


def _bundled_in_nvcc(toolkit: ToolkitReleases) -> bool:
    nvcc = toolkit.release("nvcc")
    return nvcc is not None and nvcc[0] < 13


@RULES.rule("The toolkit's wheels hold a compiler, which those of CUDA 12 do not.")
def toolkit_no_nvcc(toolkit: ToolkitReleases, selection: Selection) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    if nvcc is not None and nvcc[0] < 13:
        package = toolkit.packages["nvcc"]
        yield error(
            "toolkit-no-nvcc",
            package,
            f"{package} {toolkit.versions['nvcc']} brings ptxas, but no nvcc: no wheel of CUDA {nvcc[0]} holds one",
            chain=selection.why(package),
            fix='ask for a toolkit whose wheels hold a compiler: [cuda] toolkit = "13.2.1"',
        )


@RULES.rule("nvrtc comes with the builtins library of its own minor release.")
def toolkit_nvrtc_builtins(
    toolkit: ToolkitReleases, looks: WheelLooks, selection: Selection
) -> Iterator[Finding]:
    package = toolkit.packages.get("nvrtc")
    if package is None:
        return
    look = looks.by_package.get(package)
    if look is None:
        yield unknown("toolkit-nvrtc-builtins", package, f"the files of {package} are not known")
        return
    major, minor = toolkit.versions["nvrtc"].major, toolkit.versions["nvrtc"].minor
    names = {m.path.rsplit("/", 1)[-1] for m in look.members}
    wanted = f"libnvrtc-builtins.so.{major}.{minor}"
    if wanted not in names:
        present = sorted(n for n in names if n.startswith("libnvrtc"))
        yield error(
            "toolkit-nvrtc-builtins",
            package,
            f"{package} {toolkit.versions['nvrtc']} does not hold {wanted}, which it loads by name",
            evidence=present,
            chain=selection.why(package),
            fix="pin another version of the package",
        )


@RULES.rule("nvJitLink exports every function that the libraries linked against it import.")
def nvjitlink_older(looks: WheelLooks, selection: Selection) -> Iterator[Finding]:
    offered: set[str] = set()
    owner = ""
    for package, library in looks.libraries():
        if library.jitlink_exports:
            offered |= set(library.jitlink_exports)
            owner = package
    for package, library in looks.libraries():
        if not library.jitlink_imports:
            continue
        lacking = [n for n in library.jitlink_imports if n not in offered]
        if not owner:
            yield error(
                "nvjitlink-older",
                package,
                f"{package} needs libnvJitLink, and no package of the set brings it",
                evidence=(library.path, *lacking[:4]),
                chain=selection.why(package),
                fix='add "nvjitlink" to cuda.components',
            )
        elif lacking:
            yield error(
                "nvjitlink-older",
                owner,
                f"{owner} {selection.version(owner)} lacks functions that {package} {selection.version(package)} imports",
                evidence=(library.path, *lacking[:4]),
                chain=selection.why(owner),
                fix=f"raise {owner} to the CUDA release of {package}, or remove its pin",
            )


@RULES.rule("The toolkit's CUDA major release is the one that torch was built for.")
def torch_toolkit_major(toolkit: ToolkitReleases, selection: Selection) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    built_for = torch_cuda(selection)
    if nvcc is None or built_for is None or "torch" not in selection.chosen:
        return
    if nvcc[0] != built_for[0]:
        yield error(
            "torch-toolkit-major",
            "torch",
            f"torch {selection.version('torch')} is built for CUDA {built_for[0]}.{built_for[1]}, "
            f"the compiler is of CUDA {nvcc[0]}.{nvcc[1]}",
            evidence=(f"{toolkit.packages['nvcc']} {toolkit.versions['nvcc']}",),
            chain=(*selection.why("torch"), *selection.why(toolkit.packages["nvcc"])),
            fix=f"use a CUDA {built_for[0]} toolkit, or a torch build for CUDA {nvcc[0]}",
        )


def torch_cuda(selection: Selection) -> tuple[int, int] | None:
    """The CUDA release that the set's torch pins, from who asks for the metapackage or the run-time library."""
    for name in ("cuda-toolkit", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime"):
        for ask in selection.asks.get(name, ()):
            if ask.by == "torch" and ask.specifier.startswith("=="):
                release = Version(ask.specifier.removeprefix("==").removesuffix(".*"))
                return release.major, release.minor
    return None


@RULES.rule("No CUDA library is installed for two CUDA majors at once.")
def cuda_majors_mixed(selection: Selection) -> Iterator[Finding]:
    families: dict[str, list[str]] = {}
    for name in selection.chosen:
        stem, major = cuda_family(name)
        if major:
            families.setdefault(stem, []).append(name)
    for stem, names in sorted(families.items()):
        if len(names) > 1:
            yield error(
                "cuda-majors-mixed",
                names[0],
                f"{' and '.join(sorted(names))} are one library for two CUDA majors",
                chain=[line for name in sorted(names) for line in selection.why(name)],
                fix=f"find out who asks for the other {stem}: envspec why {sorted(names)[0]} PROFILE",
            )


def cuda_family(name: str) -> tuple[str, str]:
    """`nvidia-cublas-cu12` -> (`nvidia-cublas`, `12`); CUDA 13 names without suffix count as 13; others have no major.

    The cutlass DSL brings its libraries for both majors on purpose (4.8.0 requires both).
    """
    if not name.startswith("nvidia-") or name.startswith(("nvidia-cutlass", "nvidia-cudnn-frontend")):
        return name, ""
    for major in ("11", "12", "13"):
        if name.endswith(f"-cu{major}"):
            return name.removesuffix(f"-cu{major}"), major
    return (name, "13") if name.startswith(("nvidia-cu", "nvidia-nv")) else (name, "")


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
            chain=selection.why("triton"),
            fix="look: TRITON's bin/ptxas --version",
        )
    elif Version(ptxas) < since:
        yield error(
            "arch-triton",
            "triton",
            f"triton {triton} brings ptxas {ptxas}, which does not know {gpu.arch.sm} (CUDA {since} is the first)",
            chain=selection.why("triton"),
            fix="set TRITON_PTXAS_PATH to the toolkit's ptxas in [environment], or pin a newer triton",
        )


@RULES.rule("This host's C++ compiler is one that nvcc accepts.")
def host_compiler(toolkit: ToolkitReleases, compiler: HostCompiler) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    if nvcc is None:
        return
    limit = compiler_limit(compiler.family, nvcc)
    if limit is None:
        yield unknown(
            "host-compiler",
            compiler.path,
            f"it is not known which {compiler.family} CUDA {nvcc[0]}.{nvcc[1]} accepts",
            fix="envspec build tries it",
        )
    elif compiler.version[0] > limit:
        yield warning(
            "host-compiler",
            compiler.path,
            f"{compiler.family} {compiler.version[0]} is too new for nvcc {nvcc[0]}.{nvcc[1]}, "
            f"which accepts up to {compiler.family} {limit}",
            fix=f"install {compiler.family} {limit} or older and set CC and CXX to it",
        )


__all__ = ["cuda_family", "package_of", "torch_cuda"]
