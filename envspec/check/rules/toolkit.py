"""One CUDA toolkit: its parts belong together, and all that just-in-time compilers need are there."""

from __future__ import annotations

from collections.abc import Iterator

from envspec.check.facts import CheckInput, Selection, ToolkitReleases
from envspec.check.rules import RULES
from envspec.data.toolkit_components import component_of, components, first_major_with
from envspec.report.findings import Finding, error, note
from envspec.report.remedies import AddToList, Remedy, RemoveKey, TakeToolkit

# torch's profiler loads CUPTI, which has to know the kernels of this toolkit.
_TAKEN_TOO = ("cupti",)


@RULES.rule("nvcc, crt and nvvm are of one CUDA release.")
def toolkit_mixed(toolkit: ToolkitReleases, selection: Selection, given: CheckInput) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    if nvcc is None:
        return
    for part in ("crt", "nvvm"):
        release = toolkit.release(part)
        if release is not None and release != nvcc:
            package = toolkit.packages[part]
            yield _other_release(
                "toolkit-mixed",
                f"{package} {toolkit.versions[part]} does not belong to the CUDA {nvcc[0]}.{nvcc[1]} compiler",
                (part, toolkit),
                selection,
                given,
            )


@RULES.rule("The run-time library's headers are of the compiler's minor release.")
def toolkit_headers(toolkit: ToolkitReleases, selection: Selection, given: CheckInput) -> Iterator[Finding]:
    nvcc, runtime = toolkit.release("nvcc"), toolkit.release("cudart")
    if nvcc is None or runtime is None or nvcc == runtime:
        return
    yield _other_release(
        "toolkit-headers",
        f"{toolkit.packages['cudart']} {toolkit.versions['cudart']} brings headers of CUDA {runtime[0]}.{runtime[1]} "
        f"to a CUDA {nvcc[0]}.{nvcc[1]} compiler",
        ("cudart", toolkit),
        selection,
        given,
    )


def _other_release(
    code: str, message: str, part: tuple[str, ToolkitReleases], selection: Selection, given: CheckInput
) -> Finding:
    component, toolkit = part
    package = toolkit.packages[component]
    return error(
        code,
        package,
        message,
        evidence=(
            f"{toolkit.packages['nvcc']} {toolkit.versions['nvcc']}",
            f"{package} {toolkit.versions[component]}",
        ),
        dependency_paths=selection.why(package),
        fix="" if (remedies := _take_part(package, toolkit, given)) else _without_override(package, given),
        remedies=remedies,
    )


def _take_part(package: str, toolkit: ToolkitReleases, given: CheckInput) -> tuple[Remedy, ...]:
    """Return how a part gets the version of the toolkit release."""
    profile = given.profile
    if profile.cuda is None:
        return _take_toolkit(toolkit)
    if profile.names(package):
        return (RemoveKey(f"packages.{package}", "cuda.toolkit"),)
    component = component_of(package)
    if component is not None and component not in profile.cuda.components:
        return (AddToList("cuda.components", (component,)),)
    return ()


def _without_override(package: str, given: CheckInput) -> str:
    if any(override.name == package for override in given.profile.overrides):
        return f"remove the [[override]] of {package} from the profile, so that it comes from cuda.toolkit"
    return "name a toolkit release in the profile: [cuda] toolkit"


def _take_toolkit(toolkit: ToolkitReleases) -> tuple[Remedy, ...]:
    nvcc = toolkit.versions.get("nvcc")
    if nvcc is None or nvcc.major < first_major_with("nvcc"):
        return ()
    parts = (*(row.component for row in components() if row.jit), *_TAKEN_TOO)
    return (TakeToolkit(str(nvcc), parts),)


@RULES.rule("Every part that just-in-time compilers need is in the set.")
def toolkit_incomplete(
    toolkit: ToolkitReleases, selection: Selection, given: CheckInput
) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    for row in components():
        if not row.jit or row.component in toolkit.versions:
            continue
        if nvcc is not None and nvcc[0] < row.since:
            continue  # before that the package of nvcc held it
        if row.also_in in selection.chosen:
            yield note(
                "toolkit-incomplete",
                row.package,
                f"no {row.component} package: the copy in {row.also_in} is laid into the toolkit",
                dependency_paths=selection.why(row.also_in),
            )
            continue
        remedies = _take_toolkit(toolkit)
        if given.profile.cuda is not None:
            remedies = (AddToList("cuda.components", (row.component,)),)
        yield error(
            "toolkit-incomplete",
            row.package,
            f"no package brings {row.component}: {row.why}",
            fix="" if remedies else 'name a toolkit: [cuda] toolkit = "13.2.1"',
            remedies=remedies,
        )


@RULES.rule("The toolkit's wheels hold a compiler, which those of CUDA 12 do not.")
def toolkit_no_nvcc(toolkit: ToolkitReleases, selection: Selection) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    if nvcc is not None and nvcc[0] < first_major_with("nvcc"):
        package = toolkit.packages["nvcc"]
        yield error(
            "toolkit-no-nvcc",
            package,
            f"{package} {toolkit.versions['nvcc']} brings ptxas, but no nvcc: no wheel of CUDA {nvcc[0]} holds one",
            dependency_paths=selection.why(package),
            fix='ask for a toolkit whose wheels hold a compiler: [cuda] toolkit = "13.2.1"',
        )


@RULES.rule("The toolkit's CUDA major release is the one that torch was built for.")
def torch_toolkit_major(toolkit: ToolkitReleases, selection: Selection) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    built_for = selection.torch_cuda()
    if nvcc is None or built_for is None or "torch" not in selection.chosen:
        return
    if nvcc[0] != built_for[0]:
        yield error(
            "torch-toolkit-major",
            "torch",
            f"torch {selection.version('torch')} is built for CUDA {built_for[0]}.{built_for[1]}, "
            f"the compiler is of CUDA {nvcc[0]}.{nvcc[1]}",
            evidence=(f"{toolkit.packages['nvcc']} {toolkit.versions['nvcc']}",),
            dependency_paths=(*selection.why("torch"), *selection.why(toolkit.packages["nvcc"])),
            fix=f"use a CUDA {built_for[0]} toolkit, or a torch build for CUDA {nvcc[0]}",
        )
