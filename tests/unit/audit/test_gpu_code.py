"""Fat binaries: what is in them, what that does on a GPU, and what is said about it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envspec.audit.binaries import read_binaries
from envspec.audit.fatbin import GpuCode, read_cubin, read_modules
from envspec.audit.gpu_findings import GpuFindings, cuda_of_ptx, read_gpu_inventory
from envspec.audit.gpu_support import Mode, best_support, support_of
from envspec.data.architectures import Arch, parse_arch
from envspec.elf import ElfError
from envspec.report.findings import Finding
from envspec.report.text import render_finding
from tests.support.texts import without_more
from tests.unit.audit.conftest import Workbench

A, F = 1 << 20, 1 << 21


def entry(
    kind: int, arch: int, flags: int = 0, isa: tuple[int, int] = (1, 8), payload: bytes = b"x" * 24
) -> bytes:
    """One entry as fatbinary writes it; kind 1 is PTX, 2 a cubin."""
    head = struct.pack(
        "<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(payload), 0, 0, isa[1], isa[0], arch, 0, 0, flags, 0, 0
    )
    return head + payload


def container(*entries: bytes) -> bytes:
    """One fat binary."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def library_with(bench: Workbench, path: str, fat: bytes, section: str = ".nv_fatbin") -> Path:
    """A shared library whose section holds these bytes."""
    blob = bench.root / "fat.bin"
    blob.write_bytes(fat)
    code = f'__asm__(".section {section},\\"a\\"\\n.incbin \\"{blob}\\"\\n.previous\\n"); int f(void) {{ return 1; }}'
    return bench.library(path, code)


def arch(text: str) -> Arch:
    found = parse_arch(text)
    assert found is not None
    return found


def sass(text: str) -> GpuCode:
    return GpuCode(arch(text))


def ptx(text: str, isa: tuple[int, int] = (9, 0)) -> GpuCode:
    return GpuCode(arch(text), isa)


def test_every_entry_is_listed_with_its_variant(bench: Workbench) -> None:
    fat = container(entry(2, 90), entry(2, 90, A), entry(2, 100, F), entry(1, 120, 0, (9, 2)))
    library = library_with(bench, "a/k.so", fat + bytes(40) + container(entry(2, 75)))
    assert read_modules(str(library)) == (
        (sass("90"), sass("90a"), sass("100f"), ptx("120", (9, 2))),
        (sass("75"),),
    )


def test_a_library_without_gpu_code_has_none(bench: Workbench) -> None:
    assert read_modules(str(bench.library("a/k.so", "int f(void) { return 1; }"))) == ()


def test_relocatable_device_code_is_not_what_runs(bench: Workbench) -> None:
    library = library_with(bench, "a/k.so", container(entry(2, 90)), "__nv_relfatbin")
    assert read_modules(str(library)) == ()


def test_a_fat_binary_that_lies_about_its_size(bench: Workbench) -> None:
    fat = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 40) + entry(2, 90)
    with pytest.raises(ElfError) as caught:
        read_modules(str(library_with(bench, "a/k.so", fat)))
    assert caught.value.code == "fatbin-malformed"


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_fat_binaries_end_in_an_answer_or_an_error(bench: Workbench, data: st.DataObject) -> None:
    library = bench.site / "a" / "k.so"
    if not library.exists():
        library_with(bench, "a/k.so", container(entry(2, 90), entry(1, 120)) * 3)
    whole = bytearray(library.read_bytes())
    start = whole.find(struct.pack("<I", 0xBA55ED50))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(start, start + 600))
        if at < len(whole):
            whole[at] = data.draw(st.integers(0, 255))
    damaged = library.with_name("damaged.so")
    damaged.write_bytes(whole)
    try:
        modules = read_modules(str(damaged))
    except ElfError:
        return
    assert sum(map(len, modules)) < 64


@pytest.mark.parametrize(
    ("abi", "flags", "expected"),
    [
        (8, 0x600640A, "100a"),
        (8, 0x6006402, "100"),
        (8, 0xF00670C, "103a"),
        (7, 0x5005A, "90"),
        (7, 0x5085A, "90a"),
    ],
)
def test_a_cubin_tells_its_architecture(tmp_path: Path, abi: int, flags: int, expected: str) -> None:
    cubin = tmp_path / "k.cubin"
    identity = b"\x7fELF\x02\x01\x01\x41" + bytes([abi]) + bytes(7)
    cubin.write_bytes(struct.pack("<16sHHIQQQI", identity, 2, 190, 1, 0, 0, 0, flags))
    assert read_cubin(str(cubin)) == sass(expected)
    cubin.write_bytes(b"text")
    assert read_cubin(str(cubin)) is None


@pytest.mark.parametrize(
    ("code", "gpu", "mode"),
    [
        (sass("120a"), "12.0a", Mode.NATIVE),
        (sass("120"), "12.0a", Mode.NATIVE),
        (sass("120f"), "12.0a", Mode.NATIVE),
        (sass("120a"), "12.1a", Mode.NONE),
        (sass("120"), "12.1a", Mode.COMPATIBLE),
        (sass("120f"), "12.1a", Mode.COMPATIBLE),
        (sass("121"), "12.0a", Mode.NONE),
        (sass("100f"), "10.3a", Mode.COMPATIBLE),
        (sass("100a"), "10.3a", Mode.NONE),
        (sass("100f"), "12.0a", Mode.NONE),
        (sass("86"), "8.9", Mode.COMPATIBLE),
        (sass("90a"), "12.0a", Mode.NONE),
        (ptx("80"), "12.0a", Mode.PTX),
        (ptx("90a"), "12.0a", Mode.NONE),
        (ptx("90a"), "9.0a", Mode.PTX),
        (ptx("100f"), "10.3a", Mode.PTX),
        (ptx("100f"), "12.0a", Mode.NONE),
        (ptx("121"), "12.0a", Mode.NONE),
    ],
)
def test_what_code_does_on_a_gpu(code: GpuCode, gpu: str, mode: Mode) -> None:
    assert support_of(code, arch(gpu)).mode is mode


def test_the_best_code_is_taken() -> None:
    module = (ptx("75"), ptx("120"), sass("80"), sass("120"))
    assert best_support(module, arch("12.1")).code == sass("120")
    assert best_support((ptx("75"), ptx("100")), arch("12.1")).code == ptx("100")
    assert best_support((sass("80"),), arch("12.1")).mode is Mode.NONE


def test_which_cuda_release_wrote_a_ptx_version() -> None:
    assert cuda_of_ptx((9, 0)) == "13.0"
    assert cuda_of_ptx((99, 0)) is None


def gpu_findings(bench: Workbench, gpu: str, driver: str = "580.65.06") -> dict[str, Finding]:
    prefix = bench.environment().site_packages
    code = read_gpu_inventory(read_binaries(bench.venv), prefix)
    found = GpuFindings(code, bench.owners(), arch(gpu), driver).all()
    return {f"{f.code} {f.subject}": f for f in found}


def test_a_package_is_told_file_by_file_with_what_goes_missing(bench: Workbench) -> None:
    library_with(bench, "sgl_kernel/flash_ops.abi3.so", container(entry(2, 80), entry(2, 90, A)))
    library_with(
        bench, "sgl_kernel/sm100/common_ops.abi3.so", container(entry(2, 120, A)) + container(entry(2, 90, A))
    )
    paths = ("sgl_kernel/flash_ops.abi3.so", "sgl_kernel/sm100/common_ops.abi3.so")
    bench.package("sglang_kernel", "0.4.2", *paths)
    assert without_more(render_finding(gpu_findings(bench, "12.0a")["gpu-code sglang-kernel"])) == (
        "note[gpu-code]: sglang-kernel 0.4.2 on sm_120a: native\n"
        "  missing on sm_120a: FlashAttention-3; SGLang takes another attention backend: flashinfer, triton or trtllm_mha\n"
        "  sgl_kernel/flash_ops.abi3.so: SASS 80 90a, PTX none: no kernel image\n"
        "  sgl_kernel/sm100/common_ops.abi3.so: SASS 90a 120a, PTX none: native; 1 module is for other GPUs"
    )


def test_a_package_with_code_for_other_gpus_only_is_a_warning(bench: Workbench) -> None:
    library_with(bench, "mine/k.so", container(entry(2, 90)))
    bench.package("mine", "1", "mine/k.so")
    assert without_more(render_finding(gpu_findings(bench, "12.0a")["gpu-code-none mine"])) == (
        "warning[gpu-code-none]: mine 1 on sm_120a: no kernel image\n"
        "  mine/k.so: SASS 90, PTX none: no kernel image"
    )


def test_ptx_that_is_newer_than_the_driver_is_a_warning(bench: Workbench) -> None:
    library_with(bench, "mine/k.so", container(entry(1, 90, 0, (9, 2))))
    bench.package("mine", "1", "mine/k.so")
    found = gpu_findings(bench, "12.0a")
    assert "PTX-JIT: compute_90 runs on everything later of CUDA 13.2" in render_finding(
        found["gpu-code mine"]
    )
    assert without_more(render_finding(found["gpu-code-ptx mine"])) == (
        "warning[gpu-code-ptx]: mine: PTX of CUDA 13.2, which driver 580.65.06 (CUDA 13.0) does not compile\n"
        "  mine/k.so\n"
        "  fix: run a driver of 595.45.04 or newer"
    )
    assert "gpu-code-ptx mine" not in gpu_findings(bench, "12.0a", "600.10")


@pytest.mark.parametrize(
    ("own", "warned"), [((120,), False), ((100,), True)], ids=["one for this GPU", "none for this GPU"]
)
def test_of_modules_for_one_gpu_each_only_the_one_for_this_gpu_is_judged(
    bench: Workbench, own: tuple[int, ...], warned: bool
) -> None:
    fat = b"".join(container(entry(2, n), entry(1, n, 0, (9, 2))) for n in (80, 90, *own))
    library_with(bench, "mine/k.so", fat)
    bench.package("mine", "1", "mine/k.so")
    assert ("gpu-code-ptx mine" in gpu_findings(bench, "12.0a")) == warned


def test_other_kernels_for_an_older_gpu_are_judged(bench: Workbench) -> None:
    older = container(entry(2, 90), entry(1, 90, 0, (9, 2)))
    library_with(bench, "mine/k.so", older + older + container(entry(2, 120)))
    bench.package("mine", "1", "mine/k.so")
    assert "gpu-code-ptx mine" in gpu_findings(bench, "12.0a")


def test_a_library_that_packs_its_kernels_itself_is_not_judged(bench: Workbench) -> None:
    library_with(bench, "nvidia/cu13/lib/libcufft.so.12", container(entry(2, 75)))
    found = gpu_findings(bench, "12.0a")["gpu-code no package"]
    assert "its code cannot be listed" in found.message
