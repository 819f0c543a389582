"""Does it compile and link, now, here? One kernel through nvcc and the host linker, in the environment of the script.

It is the smallest program that meets most failures of the field: nvcc with its crt and nvvm, headers with `nv/target`,
`-lcudart`, `-lcuda`, and the names that end up in DT_NEEDED. Nothing built here is run: that needs a GPU.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
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


class Compilers(msgspec.Struct, frozen=True, kw_only=True):
    """Says what a kernel is compiled with. The compilers keep the descriptors `inherit_fds` open, as uv does."""

    cuda_home: Path
    cxx: Path
    environment: Mapping[str, str]
    inherit_fds: tuple[int, ...] = ()

    def command(self, directory: Path, *arguments: str) -> Command:
        """Return a call of one of them in a directory."""
        return Command(
            arguments=arguments,
            environment=self.environment,
            directory=directory,
            inherit_fds=self.inherit_fds,
        )


def smoke_test(arch: Arch, compilers: Compilers, work: Path) -> tuple[str, ...]:
    """Compile and link a kernel in the new directory `work`, and return the sonames that it needs at run time.

    Raises StageError `smoke-*` with the compiler's own words.
    """
    work.mkdir(parents=True)
    with _temporary_directory(work) as temporary:
        compilers = msgspec.structs.replace(
            compilers, environment={**compilers.environment, "TMPDIR": temporary}
        )
        needed = _compile_and_link(arch, compilers, work)
    for soname in _expected_sonames(compilers.cuda_home):
        if soname not in needed:
            raise StageError(
                "smoke-needed",
                f"the linked kernel does not ask for {soname} at run time",
                where=str(work),
                why=f"DT_NEEDED holds {', '.join(needed)}",
                fix="the link files in CUDA_HOME are wrong; this is a fault of envspec",
            )
    return needed


@contextlib.contextmanager
def _temporary_directory(work: Path) -> Iterator[str]:
    """Give a directory in `work` if its path holds no comma: a compiler that is ended leaves its temporary files.

    fatbinary splits their path at commas.
    """
    if "," not in str(work):
        (work / "tmp").mkdir()
        yield str(work / "tmp")
        return
    with tempfile.TemporaryDirectory(prefix="envspec-smoke-", ignore_cleanup_errors=True) as temporary:
        yield temporary


def _compile_and_link(arch: Arch, compilers: Compilers, work: Path) -> tuple[str, ...]:
    """Return the sonames that the linked library needs."""
    cuda_home = compilers.cuda_home
    source, obj, library = work / "scale.cu", work / "scale.o", work / "libscale.so"
    source.write_text(KERNEL, encoding="utf-8")
    gencode = f"arch=compute_{arch.number},code=sm_{arch.number}"
    compiling = (f"{cuda_home}/bin/nvcc", "-c", "-gencode", gencode, "-Xcompiler", "-fPIC")
    _run(
        "smoke-compile",
        "nvcc did not compile a kernel",
        compilers.command(work, *compiling, str(source), "-o", str(obj)),
    )
    # As flashinfer links: the host compiler, and nothing but CUDA_HOME to find the libraries by.
    libraries = (f"-L{cuda_home}/lib64", f"-L{cuda_home}/lib64/stubs", "-lcudart", "-lcuda", "-Wl,--trace")
    traced = _run(
        "smoke-link",
        "the host compiler did not link the kernel",
        compilers.command(work, str(compilers.cxx), "-shared", str(obj), "-o", str(library), *libraries),
    )
    _check_origin(traced, cuda_home)
    return elf.read(library).needed


def _expected_sonames(cuda_home: Path) -> Sequence[str]:
    soname = elf.read(cuda_home / "lib" / "libcudart.so").soname
    return (soname or "libcudart.so", "libcuda.so.1")


def _check_origin(traced: str, cuda_home: Path) -> None:
    """Raise StageError unless the linker, which names every file it reads, took cudart and cuda from this CUDA_HOME."""
    for line in traced.splitlines():
        name = line.strip().rsplit("/", 1)[-1]
        if name.startswith(("libcudart", "libcuda.")) and not line.strip().startswith(str(cuda_home)):
            raise StageError(
                "smoke-foreign-library",
                f"the linker took {line.strip()} instead of the library in CUDA_HOME",
                fix="unset LIBRARY_PATH and the flags in CXXFLAGS/LDFLAGS that name another toolkit",
            )


def _run(code: str, what: str, command: Command) -> str:
    """Run a compiler to its end and return what it printed."""
    program = command.arguments[0]
    try:
        done = run(command, seconds=_TIMEOUT, merged=True)
    except OSError as error:
        raise StageError(code, f"{what}: {error.strerror}", where=program) from None
    if done.timed_out:
        raise StageError(code, f"{what} within {_TIMEOUT} s", where=program)
    text = done.out.decode("utf-8", "replace")
    if done.code != 0:
        lines = [line for line in text.splitlines() if line.strip()]
        shown = "\n".join(
            "".join(c if c.isprintable() else "?" for c in line) for line in lines[:_QUOTED_LINES]
        )
        raise StageError(code, f"{what} (exit {done.code})", where=program, why=shown)
    return text
