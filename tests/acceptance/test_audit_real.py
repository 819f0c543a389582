"""The audit on real environments: healthy ones have no errors, planted faults are found and nothing else is."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from envspec.audit import loader
from envspec.audit.binaries import read_binaries
from envspec.audit.fatbin import read_modules
from envspec.audit.gpu_findings import FileCode, read_gpu_inventory
from envspec.audit.run import link_all
from envspec.cli.render import render_report
from envspec.host import ld_cache
from envspec.report.findings import Finding, Report, Severity
from envspec.report.text import render_finding
from envspec.uv.run import find_uv
from tests.acceptance.conftest import environment_of
from tests.support.command import report_of
from tests.support.loader_oracle import Answer, ask_the_loader

Copy = Callable[[Path], Path]


@pytest.mark.parametrize("stack", ["first_stack", "second_stack"])
def test_a_healthy_environment_has_no_errors(stack: str, request: pytest.FixtureRequest) -> None:
    report = audited(request.getfixturevalue(stack), gpu_code=True)
    loud = [f for f in report.findings if f.severity is not Severity.NOTE]
    assert not loud, render_report(report)


@pytest.mark.parametrize("stack", ["first_stack", "second_stack"])
def test_the_dynamic_loader_agrees(
    stack: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = environment_of(request.getfixturevalue(stack))
    linkage = link_all(environment, read_binaries(environment.venv))
    assert linkage is not None
    names = [b.name for b in linkage.files.binaries if ".so" in b.name.rpartition("/")[2]]
    answers = ask_the_loader(environment, linkage, names)
    exceptions = [answer for answer in answers if not answer.agrees]
    with capsys.disabled():
        print(f"\n{stack}: the loader agrees on {len(answers) - len(exceptions)} of {len(answers)} libraries")
        for answer in exceptions:
            print(f"  {answer.name}: {reason(answer)}")
    assert not [answer for answer in exceptions if not reason(answer)]


def reason(answer: Answer) -> str:
    """Why the loader may come to another verdict; empty where it may not."""
    return ""


def audited(out: Path, *, gpu_code: bool = False) -> Report:
    """The audit of an output directory."""
    return report_of("audit", "--out", out, *(["--gpu-code"] if gpu_code else []))


def errors(out: Path) -> list[Finding]:
    """What the audit finds wrong, warnings included."""
    return [f for f in audited(out).findings if f.severity is not Severity.NOTE]


def summary(found: list[Finding]) -> list[tuple[str, str]]:
    """(code, subject) of findings."""
    return sorted((f.code, f.subject) for f in found)


def text_of(found: list[Finding], code: str) -> str:
    """The rendered text of the one finding with that code."""
    (one,) = [f for f in found if f.code == code]
    return render_finding(one)


def pip_install(out: Path, *requirements: str) -> None:
    """What a user does to an environment behind envspec's back."""
    python = str(out / "venv" / "bin" / "python")
    subprocess.run(
        [str(find_uv()), "pip", "install", "--quiet", "--no-deps", "--python", python, *requirements],
        check=True,
        capture_output=True,
    )


def site_of(out: Path) -> Path:
    """site-packages of an output directory."""
    return environment_of(out).site


def test_a_kernel_wheel_for_another_torch(first_stack: Path, copy_of: Copy) -> None:
    out = copy_of(first_stack)
    pip_install(out, "sglang-kernel==0.4.6.post1")
    found = errors(out)
    assert summary(found) == [("drift-replaced", "sglang-kernel"), ("symbol-missing", "sglang-kernel")]
    text = text_of(found, "symbol-missing")
    assert text.startswith(
        "error[symbol-missing]: sglang-kernel 0.4.6.post1 cannot be loaded with torch 2.11.0: "
    )
    assert "sgl_kernel/flash_ops.abi3.so needs torch 2.13.0" in text, text
    assert "(in torch 2.12" in text


def test_a_torchvision_of_another_torch(second_stack: Path, copy_of: Copy) -> None:
    out = copy_of(second_stack)
    pip_install(out, "torchvision==0.26.0")
    found = errors(out)
    assert summary(found) == [("drift-replaced", "torchvision"), ("symbol-missing", "torchvision")]
    assert "torchvision/_C.so needs torch" in text_of(found, "symbol-missing")


def test_a_library_that_was_removed(first_stack: Path, copy_of: Copy) -> None:
    out = copy_of(first_stack)
    (site_of(out) / "nvidia/nccl/lib/libnccl.so.2").unlink()
    found = errors(out)
    assert summary(found) == [("drift-missing", "nvidia-nccl-cu13"), ("library-missing", "libnccl.so.2")]
    text = text_of(found, "library-missing")
    assert "needed by torch/lib/libtorch_cuda.so (torch 2.11.0)" in text
    assert "fix: nvidia-nccl-cu13 2.28.9 should bring it" in text


def test_a_cuda_12_wheel_among_those_of_13(first_stack: Path, copy_of: Copy) -> None:
    out = copy_of(first_stack)
    pip_install(out, "nvidia-nccl-cu12==2.28.9")
    found = errors(out)
    assert summary(found) == [("drift-added", "nvidia-nccl-cu12"), ("drift-changed", "nvidia-nccl-cu13")]
    assert "nvidia/nccl/lib/libnccl.so.2" in text_of(found, "drift-changed")


def test_a_truncated_library(first_stack: Path, copy_of: Copy) -> None:
    out = copy_of(first_stack)
    library = site_of(out) / "torchaudio/lib/libtorchaudio.abi3.so"
    whole = library.read_bytes()
    library.unlink()
    library.write_bytes(whole[: len(whole) // 2])
    found = errors(out)
    assert {f.subject for f in found} <= {"torchaudio", "libtorchaudio.abi3.so"}, summary(found)
    assert "torchaudio/lib/libtorchaudio.abi3.so is no library that can be loaded" in text_of(
        found, "library-damaged"
    )


def test_a_file_that_was_swapped_by_hand(first_stack: Path, copy_of: Copy) -> None:
    out = copy_of(first_stack)
    file = site_of(out) / "sglang/version.py"
    text = file.read_bytes()
    file.unlink()
    file.write_bytes(text[::-1])
    found = errors(out)
    assert summary(found) == [("drift-changed", "sglang")]
    assert "sglang/version.py" in text_of(found, "drift-changed")
    file.write_bytes(text + b"#")
    assert summary(errors(out)) == [("drift-changed", "sglang")]


def test_a_library_only_outside_the_search_path(
    first_stack: Path, copy_of: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_system_cuda(monkeypatch)
    out = copy_of(first_stack)
    environment = environment_of(out)
    aside = environment.site / "nvidia" / "aside"
    aside.mkdir()
    shutil.move(environment.site / "nvidia/cu13/lib/libcudart.so.13", aside / "libcudart.so.13")
    (environment.cuda / "lib64" / "libcudart.so.13").unlink()
    found = errors(out)
    assert summary(found) == [
        ("drift-added", "venv"),
        ("drift-missing", "nvidia-cuda-runtime"),
        ("drift-toolkit", "cuda"),
        ("library-missing", "libcudart.so.13"),
    ]
    assert "it lies at nvidia/aside/libcudart.so.13, where the loader does not look" in text_of(
        found, "library-missing"
    )


def test_gpu_code_is_what_cuobjdump_lists(first_stack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = environment_of(first_stack)
    inventory = read_binaries(environment.venv)
    code = read_gpu_inventory(inventory, environment.site_packages)
    files = [file for file in code.files if ".so" in file.name]
    cuobjdump = environment.site / "triton/backends/nvidia/bin/cuobjdump"
    with ThreadPoolExecutor(max_workers=2) as pool:
        paths = [environment.venv / file.name for file in files]
        listed = dict(
            zip(files, pool.map(lambda path: list_with_cuobjdump(cuobjdump, path), paths), strict=True)
        )
    differing = {
        file.name: (numbers_of(file), listed[file]) for file in files if numbers_of(file) != listed[file]
    }
    with capsys.disabled():
        entries = sum(counted.total() for counted in listed.values())
        agreed = len(files) - len(differing)
        print(f"\ncuobjdump agrees on {agreed} of {len(files)} libraries, {entries} entries")
    assert len(files) > 30
    assert not differing


def numbers_of(file: FileCode) -> Counter[tuple[str, str]]:
    """(kind, architecture) of every entry. This cuobjdump does not tell the variant of a cubin."""
    return Counter(
        ("elf" if code.ptx is None else "ptx", f"{code.arch.major}{code.arch.minor}")
        for module in file.modules
        for code in module
    )


def list_with_cuobjdump(cuobjdump: Path, library: Path) -> Counter[tuple[str, str]]:
    """The same as NVIDIA's tool lists it."""
    found: Counter[tuple[str, str]] = Counter()
    for kind, suffix in (("elf", "cubin"), ("ptx", "ptx")):
        done = subprocess.run(
            [str(cuobjdump), f"--list-{kind}", str(library)], capture_output=True, text=True
        )
        for number in re.findall(rf"\.sm_(\d+)[af]?\.{suffix}$", done.stdout, re.MULTILINE):
            found[kind, number] += 1
    return found


@pytest.mark.parametrize(
    ("arch", "code", "expected"),
    [
        ("compute_90a", "sm_90a", "sm_90a"),
        ("compute_100f", "sm_100f", "sm_100f"),
        ("compute_120a", "sm_120a", "sm_120a"),
        ("compute_120f", "sm_120f", "sm_120f"),
        ("compute_120", "sm_120", "sm_120"),
        ("compute_90a", "compute_90a", "compute_90a"),
        ("compute_120f", "compute_120f", "compute_120f"),
        ("compute_80", "compute_80", "compute_80"),
    ],
)
def test_variants_are_told_as_nvcc_was_told(
    first_stack: Path, tmp_path: Path, arch: str, code: str, expected: str
) -> None:
    environment = environment_of(first_stack)
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(float *x) { x[0] += 1; }\n")
    library = tmp_path / "k.so"
    command = [str(environment.cuda / "bin" / "nvcc"), "-shared", "-cudart", "none", "-Xcompiler", "-fPIC"]
    command += ["-gencode", f"arch={arch},code={code}", "-o", str(library), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    codes = [code for module in read_modules(str(library)) for code in module]
    assert [str(code) for code in codes] == [expected]
    assert all(code.ptx in (None, (9, 2)) for code in codes)


def test_an_older_nvjitlink(first_stack: Path, copy_of: Copy, tmp_path: Path) -> None:
    out = copy_of(first_stack)
    environment = environment_of(out)
    python = str(environment.venv / "bin" / "python")
    subprocess.run(
        [
            *[str(find_uv()), "pip", "install", "--quiet", "--no-deps", "--python", python],
            *["--target", str(tmp_path), "nvidia-nvjitlink-cu12==12.4.127"],
        ],
        check=True,
    )
    older = tmp_path / "nvidia/nvjitlink/lib/libnvJitLink.so.12"
    for name in (
        environment.site / "nvidia/cu13/lib/libnvJitLink.so.13",
        environment.cuda / "lib64/libnvJitLink.so.13",
    ):
        name.unlink()
        shutil.copyfile(older, name)
    found = errors(out)
    assert summary(found) == [
        ("drift-changed", "nvidia-nvjitlink"),
        ("drift-toolkit", "cuda"),
        ("symbol-version", "libnvJitLink.so.13"),
    ]
    text = text_of(found, "symbol-version")
    assert "does not define libnvJitLink.so.13; 1 file cannot be loaded with it" in text, text
    assert "needed by nvidia/cu13/lib/libcusparse.so.12 (nvidia-cusparse 12.6.3.3)" in text


def without_system_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose loader cache knows no CUDA."""

    def own_cache(machine: str) -> Mapping[str, str]:
        return {name: path for name, path in ld_cache.own_cache(machine).items() if "cuda" not in path}

    monkeypatch.setattr(loader, "own_cache", own_cache)
