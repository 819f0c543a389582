"""The driver: can it run what this toolkit makes?"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from envspec.check.facts import CheckInput, Gpu, ToolkitReleases
from envspec.check.rules import RULES
from envspec.data.compatibility import cuda_of_driver, driver_of_cuda
from envspec.data.jit_variables import Kind, consumers
from envspec.report.findings import Finding, error, unknown, warning
from envspec.report.remedies import SetKey


@RULES.rule("The profile's minimum driver runs programs of the toolkit's CUDA major.")
def driver_minimum(toolkit: ToolkitReleases, gpu: Gpu) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    if nvcc is None:
        return
    needed = driver_of_cuda(f"{nvcc[0]}.0")
    if needed is None:
        yield unknown(
            "driver-minimum", "gpu.minimum-driver", f"it is not known which driver CUDA {nvcc[0]} needs"
        )
    elif not gpu.minimum_driver:
        yield warning(
            "driver-minimum",
            "gpu.minimum-driver",
            f"the profile names no minimum driver; CUDA {nvcc[0]} needs {needed} or newer",
            remedies=[SetKey("gpu.minimum-driver", needed)],
        )
    elif Version(gpu.minimum_driver) < Version(needed):
        yield error(
            "driver-minimum",
            "gpu.minimum-driver",
            f"the profile admits driver {gpu.minimum_driver}, CUDA {nvcc[0]} needs {needed} or newer",
            fix=f'set gpu.minimum-driver = "{needed}", or take a toolkit of an older major',
            remedies=[SetKey("gpu.minimum-driver", needed)],
        )


@RULES.rule("Nothing compiles to PTX where the minimum driver is older than the toolkit.")
def driver_ptx(toolkit: ToolkitReleases, gpu: Gpu, given: CheckInput) -> Iterator[Finding]:
    nvcc = toolkit.release("nvcc")
    if nvcc is None or not gpu.minimum_driver:
        return
    driver = cuda_of_driver(gpu.minimum_driver)
    lists = {row.variable for row in consumers() if row.kind is Kind.ARCH_LIST}
    asked = {n: v for n, v in given.profile.environment if n in lists and "+ptx" in v.lower()}
    if driver is None or not asked:
        return
    release = Version(driver)
    if (release.major, release.minor) < nvcc:
        name, value = next(iter(asked.items()))
        yield error(
            "driver-ptx",
            f"environment.{name}",
            f"{name}={value!r} ships PTX of CUDA {nvcc[0]}.{nvcc[1]}, which driver {gpu.minimum_driver} "
            f"(CUDA {driver}) cannot compile",
            fix=f"remove +PTX, or raise gpu.minimum-driver to {driver_of_cuda(f'{nvcc[0]}.{nvcc[1]}')}",
        )
