"""The driver stub against its readers: linkers, the loader, readelf, pyelftools (tests/real has the real cuda.h)."""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from envspec.report.errors import EnvspecError, StageError
from envspec.toolkit.stub import MAX_HEADER_CHARACTERS, SONAME, driver_symbols, stub_library
from tests.support import needs

MACHINES: tuple[str, ...] = ("x86_64", "aarch64")

HEADER = r"""
/* cuCommented(int) is prose; so is CUresult CUDAAPI cuAlsoCommented(int); */
// CUresult CUDAAPI cuInALine(int);
#define cuMemAlloc                          cuMemAlloc_v2
#define cuMemcpyHtoD  \
    __CUDA_API_PTDS(cuMemcpyHtoD_v2)
#  define cuLaunchKernel   __CUDA_API_PTSZ( cuLaunchKernel )  // trailing
#define cuGetProcAddress_v2 cuGetProcAddress_v2_ptsz
#define CU_STREAM_LEGACY ((CUstream)0x1)
typedef void (CUDAAPI *CUhostFn)(void *userData);
typedef CUresult CUDAAPI cuFunctionType(int);
typedef CUresult (CUDAAPI *PFN_cuInit_v2000)(unsigned int Flags);
CUresult CUDAAPI cuInit(unsigned int Flags);
__CUDA_DEPRECATED CUresult CUDAAPI cuCtxAttach(CUcontext *pctx, unsigned int flags);
CUresult CUDAAPI
cuLinkCreate (unsigned int numOptions,
              CUjit_option *options);
CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize);
CUresult CUDAAPI cudaNotOurs(int);
#if defined(__CUDA_API_VERSION_INTERNAL)
    CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize);
    CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev);
#else
static inline CUresult cuGetProcAddress_v2_ptsz(const char *symbol) {
    return cuGetProcAddress_v2(symbol);
}
#endif
"""


def test_what_a_header_declares() -> None:
    assert driver_symbols(HEADER) == (
        "cuCtxAttach",
        "cuCtxCreate_v2",
        "cuGetProcAddress_v2",
        "cuInit",
        "cuLaunchKernel",
        "cuLaunchKernel_ptsz",
        "cuLinkCreate",
        "cuMemAlloc",
        "cuMemAlloc_v2",
        "cuMemcpyHtoD",
        "cuMemcpyHtoD_v2",
        "cuMemcpyHtoD_v2_ptds",
    )


def test_headers_add_up_and_line_ends_do_not_matter() -> None:
    other = "CUresult CUDAAPI cuGLInit(void);\nCUresult CUDAAPI cuInit(unsigned int Flags);"
    assert driver_symbols(HEADER.replace("\n", "\r\n"), other) == tuple(
        sorted({*driver_symbols(HEADER), "cuGLInit"})
    )


HOSTILE = {
    "comments that never end": "/*" * 500_000,
    "comments that overlap": "/*/" * 500_000,
    "line comments": "//*\n" * 300_000,
    "a word that never goes on": "CUDAAPI " * 200_000,
    "spaces inside a declaration": "CUresult" + " " * 500_000 + "cuA" + " " * 500_000 + ";",
    "spaces inside a macro": "#define cuA __CUDA_API_PTSZ(cuB" + " " * 500_000 + "x",
    "a name that never ends": "CUDAAPI " + "cuA" * 500_000,
    "directives": "#define cuA " * 100_000,
    "continued lines": "#define cuA \\\n" * 100_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    # No clock: a quadratic scan of these takes minutes, and the suite's patience is the limit.
    assert len(driver_symbols(text)) <= 2


def test_a_header_has_a_largest_size() -> None:
    with pytest.raises(StageError, match="too large to be one"):
        driver_symbols(" " * (MAX_HEADER_CHARACTERS + 1))


@given(st.text(alphabet=st.sampled_from("cuADefPI /*\\\n#();{}_ \u0130é"), max_size=200))
def test_any_text_gives_sorted_c_names(text: str) -> None:
    names = driver_symbols(text, "CUresult CUDAAPI cuInit(unsigned);")
    assert list(names) == sorted(set(names))
    assert all(re.fullmatch(r"cu[A-Z][A-Za-z0-9_]*", name) for name in names)


def test_an_empty_stub_is_refused() -> None:
    with pytest.raises(StageError, match="declare no driver function"):
        stub_library(driver_symbols("/* nothing */"), "x86_64")


NAMES = (
    "cuCtxCreate",
    "cuCtxCreate_v2",
    "cuGetProcAddress",
    "cuInit",
    "cuLaunchKernel_ptsz",
    "cuMemAlloc_v2",
)


@pytest.mark.parametrize(
    ("machine", "digest"),
    [
        ("x86_64", "4635ecb32746300f5f969f2756c5ae52256ad67e35a87456d212b6d2b51896e4"),
        ("aarch64", "4c2a0c65d4c3c9986f724d5c2f21606dae8939b4e75441afb543cd552add105d"),
    ],
)
def test_same_names_same_bytes(machine: str, digest: str) -> None:
    """The digest is pinned: a changed byte changes the toolchain's identity, and with it every cache."""
    once = stub_library(NAMES, machine)
    assert once == stub_library([*reversed(NAMES), *NAMES], machine)
    assert hashlib.sha256(once).hexdigest() == digest


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("names", [NAMES[:1], NAMES], ids=["one", "several"])
def test_what_pyelftools_reads(machine: str, names: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "libcuda.so"
    path.write_bytes(stub_library(names, machine))
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        assert elf.get_machine_arch() == {"x86_64": "x64", "aarch64": "AArch64"}[machine]
        assert elf["e_type"] == "ET_DYN"
        dynamic = {tag.entry.d_tag: tag for tag in elf.get_section_by_name(".dynamic").iter_tags()}
        assert dynamic["DT_SONAME"].soname == SONAME
        assert "DT_NEEDED" not in dynamic
        symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())[1:]
        assert [symbol.name for symbol in symbols] == sorted(names)
        assert {symbol["st_info"]["type"] for symbol in symbols} == {"STT_FUNC"}
        assert {symbol["st_info"]["bind"] for symbol in symbols} == {"STB_GLOBAL"}
        assert len({symbol["st_value"] for symbol in symbols}) == len(names)
        table = elf.get_section_by_name(".hash")
        assert [table.get_symbol(name).name for name in names] == list(names)
        assert table.get_symbol("cuNotThere") is None
        rights = {segment["p_type"]: segment["p_flags"] for segment in elf.iter_segments()}
        assert rights["PT_GNU_STACK"] & 1 == 0
        text = elf.get_section_by_name(".text")
        for symbol in symbols:
            at = symbol["st_value"] - text["sh_addr"]
            code = text.data()[at : at + symbol["st_size"]]
            # mov eax, 34; ret - mov w0, #34; ret
            assert code.hex() == {"x86_64": "b822000000c3", "aarch64": "40048052c0035fd6"}[machine]


@pytest.mark.parametrize("machine", MACHINES)
def test_readelf_has_no_complaint(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "libcuda.so"
    path.write_bytes(stub_library(NAMES, machine))
    done = subprocess.run(["readelf", "-aW", path], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "warning" not in done.stdout.lower()


PROGRAM = """
extern int cuInit(unsigned);
int main(void) { return cuInit(0); }
"""

OPENER = """
#include <dlfcn.h>
int main(int count, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
    int (*call)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : 0;
    return call ? call(0) : 1;
}
"""


def _compile(source: str, directory: Path, *options: str) -> Path:
    program = directory / "program"
    (directory / "program.c").write_text(source)
    subprocess.run(["cc", "program.c", "-o", program, *options], cwd=directory, check=True)
    return program


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    directory = tmp_path / "lib64" / "stubs"
    directory.mkdir(parents=True)
    (directory / "libcuda.so").write_bytes(stub_library(NAMES, _host()))
    (directory / "libcuda.so.1").symlink_to("libcuda.so")
    return directory


def _host() -> str:
    return "aarch64" if platform.machine() == "aarch64" else "x86_64"


@pytest.mark.parametrize(
    "linker", [pytest.param(name, marks=needs.program(f"ld.{name}")) for name in ("bfd", "gold", "lld")]
)
@pytest.mark.parametrize("library", ["-lcuda", "-l:libcuda.so.1"])
def test_linkers_link_against_it(linker: str, library: str, stubs: Path, tmp_path: Path) -> None:
    program = _compile(PROGRAM, tmp_path, f"-fuse-ld={linker}", f"-L{stubs}", library, "-Wl,--as-needed")
    with program.open("rb") as stream:
        dynamic = ELFFile(stream).get_section_by_name(".dynamic")
        needed = [tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
    assert SONAME in needed
    assert subprocess.run([program], env={"LD_LIBRARY_PATH": str(stubs)}, check=False).returncode == 34


def test_a_missing_symbol_is_still_a_link_error(stubs: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        _compile(PROGRAM.replace("cuInit", "cuNotThere"), tmp_path, f"-L{stubs}", "-lcuda")


def test_the_loader_opens_it_and_its_functions_say_stub(stubs: Path, tmp_path: Path) -> None:
    program = _compile(OPENER, tmp_path, "-ldl")
    assert subprocess.run([program, stubs / "libcuda.so"], check=False).returncode == 34


def test_a_machine_without_a_stub() -> None:
    with pytest.raises(EnvspecError) as caught:
        stub_library(["cuInit"], "riscv64")
    assert (caught.value.code, caught.value.what) == (
        "machine-unsupported",
        "envspec knows x86_64 and aarch64, this is riscv64",
    )
