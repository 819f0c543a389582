"""Does it compile and link, now, here? One kernel through nvcc and the host linker, in the environment of the script.

It is the smallest program that meets most failures of the field: nvcc with its crt and nvvm, headers with `nv/target`,
`-lcudart`, `-lcuda`, and the names that end up in DT_NEEDED. Nothing built here is run: that needs a GPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from envspec import elf
from envspec.data.architectures import Arch
from envspec.host.commands import Command, run
from envspec.report.errors import StageError

_TIMEOUT = 300
_QUOTED_LINES = 12

KERNEL = """\
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void scale(__half *values, float factor, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) values[at] = __float2half(__half2float(values[at]) * factor);
}

extern "C" int run_scale(void *values, int count) {
    CUdevice device;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 1;
    scale<<<(count + 255) / 256, 256>>>(static_cast<__half *>(values), 2.0f, count);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 2;
}
"""


class SmokeResult(msgspec.Struct, frozen=True):
    """What the linked library needs at run time."""

    needed: tuple[str, ...]


def smoke(
    arch: Arch,
    cuda_home: Path,
    cxx: Path,
    environment: Mapping[str, str],
    work: Path,
    inherit_fds: tuple[int, ...] = (),
) -> SmokeResult:
    """Compile and link; raise StageError `smoke-*` with the compiler's own words.

    The compilers inherit the descriptors `inherit_fds`, as uv does.
    """
    work.mkdir(parents=True)
    if "," not in str(work):
        (work / "tmp").mkdir()
        return _smoke(arch, cuda_home, cxx, {**environment, "TMPDIR": str(work / "tmp")}, work, inherit_fds)
    # A compiler that is ended leaves its temporary files, and fatbinary splits their path at commas.
    with tempfile.TemporaryDirectory(prefix="envspec-smoke-", ignore_cleanup_errors=True) as temporary:
        return _smoke(arch, cuda_home, cxx, {**environment, "TMPDIR": temporary}, work, inherit_fds)


def _smoke(
    arch: Arch,
    cuda_home: Path,
    cxx: Path,
    environment: Mapping[str, str],
    work: Path,
    inherit_fds: tuple[int, ...],
) -> SmokeResult:
    source, obj, library = work / "scale.cu", work / "scale.o", work / "libscale.so"
    source.write_text(KERNEL, encoding="utf-8")
    gencode = f"arch=compute_{arch.number},code=sm_{arch.number}"
    nvcc = [str(cuda_home / "bin" / "nvcc"), "-c", "-gencode", gencode, "-Xcompiler", "-fPIC"]
    _run(
        "smoke-compile",
        "nvcc did not compile a kernel",
        [*nvcc, str(source), "-o", str(obj)],
        environment,
        work,
        inherit_fds,
    )
    # As flashinfer links: the host compiler, and nothing but CUDA_HOME to find the libraries by.
    link = [
        str(cxx),
        "-shared",
        str(obj),
        "-o",
        str(library),
        f"-L{cuda_home}/lib64",
        f"-L{cuda_home}/lib64/stubs",
    ]
    traced = _run(
        "smoke-link",
        "the host compiler did not link the kernel",
        [*link, "-lcudart", "-lcuda", "-Wl,--trace"],
        environment,
        work,
        inherit_fds,
    )
    _check_origin(traced, cuda_home)
    needed = elf.read(library).needed
    for soname in _expected_sonames(cuda_home):
        if soname not in needed:
            raise StageError(
                "smoke-needed",
                f"the linked kernel does not ask for {soname} at run time",
                where=str(library),
                why=f"DT_NEEDED holds {', '.join(needed)}",
                fix="the link files in CUDA_HOME are wrong; this is a fault of envspec",
            )
    return SmokeResult(needed)


def _expected_sonames(cuda_home: Path) -> Sequence[str]:
    soname = elf.read(cuda_home / "lib" / "libcudart.so").soname
    return (soname or "libcudart.so", "libcuda.so.1")


def _check_origin(traced: str, cuda_home: Path) -> None:
    """The linker names every file it reads; cudart and cuda must be ours, not some other toolkit's."""
    for line in traced.splitlines():
        name = line.strip().rsplit("/", 1)[-1]
        if name.startswith(("libcudart", "libcuda.")) and not line.strip().startswith(str(cuda_home)):
            raise StageError(
                "smoke-foreign-library",
                f"the linker took {line.strip()} instead of the library in CUDA_HOME",
                fix="unset LIBRARY_PATH and the flags in CXXFLAGS/LDFLAGS that name another toolkit",
            )


def _run(
    code: str,
    what: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    work: Path,
    inherit_fds: tuple[int, ...],
) -> str:
    """Run a compiler to its end and return what it printed."""
    call = Command(arguments=tuple(command), environment=environment, directory=work, inherit_fds=inherit_fds)
    try:
        done = run(call, seconds=_TIMEOUT, merged=True)
    except OSError as error:
        raise StageError(code, f"{what}: {error.strerror}", where=command[0]) from None
    if done.timed_out:
        raise StageError(code, f"{what} within {_TIMEOUT} s", where=command[0])
    text = done.out.decode("utf-8", "replace")
    if done.code != 0:
        lines = [line for line in text.splitlines() if line.strip()]
        shown = "\n".join(
            "".join(c if c.isprintable() else "?" for c in line) for line in lines[:_QUOTED_LINES]
        )
        raise StageError(code, f"{what} (exit {done.code})", where=command[0], why=shown)
    return text
