"""From a profile to a compiled kernel, with the real wheels, through the command line. Nothing here needs a GPU."""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.support.command import ENVSPEC, Done, environment, envspec, masked, on_disk
from tests.support.texts import without_more
from tests.support.wheels import NVCC_STAND_IN, make_wheel

PROFILE = """\
[gpu]
arch = "12.0a"
minimum-driver = "580.65.06"
[cuda]
toolkit = "13.2.1"
[packages]
ninja = "*"
[resolve]
exclude-newer = 2026-05-25
"""

KERNEL = r"""
#include <cub/cub.cuh>
#include <cuda.h>
#include <cuda_fp16.h>

__global__ void total(__half *values) {
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ typename Reduce::TempStorage place;
    float sum = Reduce(place).Sum(__half2float(values[threadIdx.x]));
    if (threadIdx.x == 0) values[0] = __float2half(sum);
}

extern "C" int run_total(void *values) {
    if (cuInit(0) != CUDA_SUCCESS) return 1;
    total<<<1, 128>>>(static_cast<__half *>(values));
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 2;
}
"""


class Built:
    """An environment, and what the command said when it built it."""

    def __init__(self, root: Path, done: Done) -> None:
        self.root = root
        self.out = root / "out"
        self.done = done

    def run(self, *command: str, env: dict[str, str | None] | None = None) -> Done:
        """`envspec run -- COMMAND`."""
        return envspec("run", "--", *command, cwd=self.root, env=env)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The small profile, built once, at a path that scripts and compilers get wrong."""
    root = tmp_path_factory.mktemp("Umgebung für SM120, größer")
    (root / "small.toml").write_text(PROFILE)
    return Built(root, envspec("build", "small.toml", "--python", sys.executable, cwd=root))


def test_the_stages_and_the_last_line(built: Built) -> None:
    assert (built.done.code, built.done.out) == (0, "source out/sglang_env.sh\n")
    lines = re.sub(r"\d+ files", "N files", masked(built.done.err, built.root))
    assert lines == (
        "profile   small: sm_120a, PYTHON, COMPILER (T s)\n"
        "lock      7 packages, lock made (T s)\n"
        "check     nothing found (T s)\n"
        "install   7 packages, N files (T s)\n"
        "toolkit   DIGEST: N files of 6 packages (T s)\n"
        "script    sglang_env.sh (T s)\n"
        "audit     nothing found (T s)\n"
        "smoke     sm_120a kernel compiled and linked, needs libcudart.so.13, libcuda.so.1 (T s)\n"
        "publish   generation 1 is current, DIGEST (T s)\n"
    )


def test_what_lies_in_the_output(built: Built) -> None:
    assert sorted(p.name for p in built.out.iterdir()) == [
        ".envspec", "cuda", "current", "envspec.json", "sglang_env.sh", "venv",
    ]  # fmt: skip
    for name in (
        "bin/nvcc", "bin/ptxas", "nvvm/bin/cicc", "nvvm/libdevice/libdevice.10.bc", "include/cuda.h", "include/nv/target",
        "include/crt/host_config.h", "include/cccl/cub/cub.cuh", "include/cccl/cuda/std/type_traits", "lib64/libcudart.so",
        "lib64/libnvrtc.so", "lib64/stubs/libcuda.so",
    ):  # fmt: skip
        assert (built.out / "cuda" / name).is_file(), name
    assert soname(built.out / "cuda" / "lib64" / "libcudart.so") == "libcudart.so.13"
    assert soname(built.out / "cuda" / "lib64" / "stubs" / "libcuda.so") == "libcuda.so.1"
    assert not (built.out / "cuda" / "lib64" / "libcuda.so").exists()
    state = built.out / ".envspec"
    assert sorted(p.name for p in state.iterdir()) == [
        "generations",
        "jit",
        "last",
        "last-build.log",
        "lock",
        "owner",
        "toolchains",
    ]
    assert len(list((state / "toolchains").iterdir())) == 1


def test_a_second_run_has_nothing_to_do_and_changes_nothing(built: Built) -> None:
    before = on_disk(built.root)
    again = envspec("build", "small.toml", "--python", sys.executable, cwd=built.root)
    assert (again.code, again.out) == (
        0,
        "nothing to do: the environment is up to date\nsource out/sglang_env.sh\n",
    )
    assert masked(again.err) == (
        "profile   small: sm_120a, PYTHON, COMPILER (T s)\nlock      7 packages, lock unchanged (T s)\n"
    )
    assert on_disk(built.root) == before


def test_another_profile_of_the_same_toolchain_keeps_its_path(built: Built, tmp_path: Path) -> None:
    """ninja and the JIT caches compare command lines: what holds CUDA_HOME must change with the toolchain alone."""
    shutil.copy(built.root / "small.lock", tmp_path / "small.lock")
    (tmp_path / "small.toml").write_text(PROFILE)
    steps = ["small.toml", "--python", sys.executable]
    assert envspec("build", *steps, cwd=tmp_path).code == 0
    first = envspec("run", "--", "sh", "-c", 'echo "$CUDA_HOME $VIRTUAL_ENV"', cwd=tmp_path).out.split()
    (tmp_path / "small.toml").write_text(PROFILE + '[environment]\nSGLANG_LOG_LEVEL = "debug"\n')
    again = envspec("build", *steps, cwd=tmp_path)
    assert again.code == 0 and "publish   generation 2 is current" in again.err
    second = envspec("run", "--", "sh", "-c", 'echo "$CUDA_HOME $VIRTUAL_ENV"', cwd=tmp_path).out.split()
    assert first[0] == second[0] and first[1] != second[1]
    assert Path(first[1], "bin", "python").exists()  # whoever runs from it goes on


def test_a_kernel_compiles_and_links_in_a_shell_that_only_sourced_the_script(
    built: Built, tmp_path: Path
) -> None:
    (tmp_path / "total.cu").write_text(KERNEL)
    commands = (
        '. "$1" && nvcc -c -gencode arch=compute_120a,code=sm_120a -Xcompiler -fPIC total.cu -o total.o'
        " && c++ -shared total.o -o libtotal.so -lcudart -lcuda && ninja --version"
    )
    done = subprocess.run(
        ["bash", "-c", commands, "bash", str(built.out / "sglang_env.sh")],
        cwd=tmp_path,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(r"1\.\d+\.\d+\S*\n", done.stdout)
    assert {"libcudart.so.13", "libcuda.so.1"} <= set(needed(tmp_path / "libtotal.so"))
    assert "nvcc" in done.args[2] and not (tmp_path / "libtotal.so").stat().st_size < 10_000


def soname(library: Path) -> str:
    """DT_SONAME, read by pyelftools."""
    return next(str(tag.soname) for tag in dynamic_tags(library) if tag.entry.d_tag == "DT_SONAME")


def needed(library: Path) -> list[str]:
    """DT_NEEDED, read by pyelftools."""
    return [tag.needed for tag in dynamic_tags(library) if tag.entry.d_tag == "DT_NEEDED"]


def dynamic_tags(library: Path) -> list:  # type: ignore[type-arg]
    """The dynamic section."""
    with library.open("rb") as file:
        return list(ELFFile(file).get_section_by_name(".dynamic").iter_tags())


# ---- envspec run -------------------------------------------------------------------------------------------------------


def test_run_passes_the_exit_code_and_both_outputs_through(built: Built) -> None:
    assert built.run("sh", "-c", "echo out; echo err >&2; exit 42") == (42, "out\n", "err\n")
    assert built.run("true") == (0, "", "")
    assert built.run("sh", "-c", "kill -9 $$") == (-9, "", "")


def test_run_passes_arguments_through_as_they_are(built: Built) -> None:
    words = ["two words", "line\nbreak", "*", "$HOME", "`id`", "--help", "--out", "", "é", "'\"", "--", "\\"]
    tell = "import json, sys; print(json.dumps(sys.argv[1:]))"
    done = built.run("python", "-c", tell, *words)
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == words


def test_run_takes_the_environments_programs_and_leaves_the_rest_alone(built: Built) -> None:
    tell = "import json, os, sys; print(json.dumps([sys.prefix, os.environ['CUDA_HOME'], os.getcwd(), os.environ['MINE']]))"
    done = built.run("python", "-c", tell, env={"MINE": "kept", "PYTHONPATH": "/nonexistent"})
    prefix, cuda_home, cwd, mine = json.loads(done.out)
    assert Path(prefix) == (built.out / "venv").resolve()
    assert Path(cuda_home) == (built.out / "cuda").resolve()
    assert (cwd, mine) == (str(built.root), "kept")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_run_lets_signals_reach_the_command(built: Built, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    loop = f"trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.02; done"
    with started(built, "sh", "-c", loop) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.communicate(timeout=10) == (f"got {name}\n".encode(), b"")
        assert process.returncode == 7


def test_run_ends_as_the_command_ends(built: Built) -> None:
    with started(built, "sleep", "60") as process:
        comm = Path(f"/proc/{process.pid}/comm")
        deadline = time.monotonic() + 10
        while comm.read_text() != "sleep\n":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.terminate()
        assert process.wait(timeout=10) == -signal.SIGTERM


def test_run_restores_the_signals_that_python_ignores(built: Built) -> None:
    def ignored(*command: str) -> str:
        return subprocess.run([*command, "grep", "SigIgn", "/proc/self/status"], cwd=built.root, capture_output=True,
                              text=True, check=True).stdout  # fmt: skip

    assert ignored(*ENVSPEC, "run", "--") == ignored("env")


def started(built: Built, *command: str) -> subprocess.Popen[bytes]:
    """`envspec run -- COMMAND` in the background."""
    return subprocess.Popen(
        [*ENVSPEC, "run", "--", *command],
        cwd=built.root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_run_of_what_is_not_there(built: Built, tmp_path: Path) -> None:
    done = built.run("no-such-command")
    assert (done.code, done.out, without_more(done.err)) == (
        2,
        "",
        "error[command-not-found]: there is no command 'no-such-command'\n"
        "  PATH of the environment in out\n"
        "  fix: check its name; what a package brings has to be in the profile\n",
    )
    text = tmp_path / "not a program"
    text.write_bytes(b"\x00\x01")
    text.chmod(0o755)
    done = built.run(str(text))
    assert (done.code, done.out, without_more(done.err.replace(str(tmp_path), "DIR"))) == (
        2,
        "",
        "error[command-not-found]: cannot run DIR/not a program: Exec format error\n"
        "  PATH of the environment in out\n",
    )
    done = envspec("run", "--out", "not here", "--", "true", cwd=tmp_path)
    assert (done.code, done.out, without_more(done.err)) == (
        2,
        "",
        "error[output-missing]: not here is not an environment that envspec built\n"
        "  fix: build it first: envspec build PROFILE, or name another --out\n",
    )


# ---- no cccl wheel: flashinfer's copy ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bundled(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a wheel that holds the real CCCL where flashinfer-python has its copy, and nothing else.

    The real one would bring 60 packages; its copy is laid out as the CCCL repository is.
    """
    site = next((built.out / "venv" / "lib").glob("python3*")) / "site-packages"
    (record,) = site.glob("nvidia_cuda_cccl-*.dist-info/RECORD")
    files: dict[str, bytes | str] = {"flashinfer/data/cccl/ci/test/inspect.py": "\n"}
    prefixes = {
        "cuda/": "libcudacxx/include/",
        "nv/": "libcudacxx/include/",
        "cub/": "cub/",
        "thrust/": "thrust/",
    }
    with record.open(newline="") as rows:
        for path, *_ in csv.reader(rows):
            header = path.removeprefix("nvidia/cu13/include/cccl/")
            for start, place in prefixes.items():
                if header != path and header.startswith(start):
                    files[f"flashinfer/data/cccl/{place}{header}"] = (site / path).read_bytes()
    assert len(files) > 1000
    wheels = tmp_path_factory.mktemp("bundled") / "wheels"
    make_wheel(wheels, "flashinfer-python", "0.6.11", files)
    return wheels


def test_flashinfers_copy_stands_in_for_a_missing_cccl_wheel(bundled: Path, tmp_path: Path) -> None:
    (tmp_path / "bundled.toml").write_text(
        PROFILE.replace(
            'toolkit = "13.2.1"',
            'toolkit = "13.2.1"\ncomponents = ["nvcc", "crt", "nvvm", "cudart", "nvrtc"]',
        ).replace("ninja =", 'flashinfer-python = "0.6.11"\nninja =')
        + f'[[index]]\nname = "bundled"\nurl = "{bundled.as_uri()}"\nformat = "flat"\n'
    )
    done = envspec("build", "bundled.toml", "--python", sys.executable, cwd=tmp_path)
    assert done.code == 0, done.err
    assert "nvidia-cuda-cccl" not in (tmp_path / "bundled.lock").read_text()
    cuda = tmp_path / "out" / "cuda"
    assert (cuda / "include" / "nv" / "target").is_file()  # where c++ looks, which reads no nvcc.profile
    assert (cuda / "include" / "cccl" / "nv" / "target").is_file()
    assert not (cuda / "include" / "cccl" / "ci").exists()
    kernel = KERNEL.replace("cub/cub.cuh", "cub/block/block_reduce.cuh")
    (tmp_path / "total.cu").write_text(kernel)
    compile_ = ["nvcc", "-cubin", "-arch=sm_120a", "total.cu", "-o", "total.cubin"]
    assert envspec("run", "--", *compile_, cwd=tmp_path) == (0, "", "")
    assert (tmp_path / "total.cubin").read_bytes().startswith(b"\x7fELF")


# ---- CUDA 12: one directory a component --------------------------------------------------------------------------------

CUDA_12 = """\
[gpu]
arch = "12.0a"
minimum-driver = "570.26"
[packages]
nvidia-cuda-cccl-cu12 = "12.9.27"
nvidia-cuda-nvcc-cu12 = "12.9.86"
nvidia-cuda-nvrtc-cu12 = "12.9.86"
nvidia-cuda-runtime-cu12 = "12.9.79"
[resolve]
exclude-newer = 2026-05-25
"""

NVRTC = r"""
import ctypes, os, sys
nvrtc = ctypes.CDLL("libnvrtc.so.12")
program = ctypes.c_void_p()
def text(size, get):
    length = ctypes.c_size_t()
    size(program, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value)
    get(program, buffer)
    return buffer.value
source = open(sys.argv[1], "rb").read()
options = [b"--gpu-architecture=compute_120a", b"--std=c++17", b"-I" + os.environb[b"CUDA_HOME"] + b"/include"]
nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"total.cu", 0, None, None)
failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
if failed:
    sys.exit(text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode())
open(sys.argv[2], "wb").write(text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX))
"""

CUDA_12_KERNEL = r"""
#include <cub/block/block_reduce.cuh>
#include <cuda_fp16.h>
extern "C" __global__ void total(__half *values) {
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ typename Reduce::TempStorage place;
    float sum = Reduce(place).Sum(__half2float(values[threadIdx.x]));
    if (threadIdx.x == 0) values[0] = __float2half(sum);
}
"""

CUDA_12_HOST = r"""
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
extern "C" int go(float *value) {
    *value = __half2float(__float2half(*value));
    return cuInit(0) || cudaDeviceSynchronize();
}
"""


def test_cuda_12_wheels_hold_no_compiler_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "twelve.toml").write_text(CUDA_12)
    # The check refuses it before the download; what the later stages say of the files is the point here.
    allowed = ("--allow", "toolkit-no-nvcc")
    done = envspec("build", "twelve.toml", "--python", sys.executable, *allowed, cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert without_more(done.err).partition("toolkit   ")[2].partition("\n")[2] == (
        "error[toolkit-missing]: no package of this environment brings nvcc\n"
        "  nvidia-cuda-nvcc-cu12 brings ptxas, but no wheel of CUDA 12 holds nvcc or cicc\n"
        '  fix: ask for a toolkit whose wheels hold a compiler in the profile: [cuda] toolkit = "13.2.1"\n'
    )
    assert not (tmp_path / "out" / "current").is_symlink()


def test_cuda_12_wheels_are_laid_out_by_the_same_code(tmp_path: Path) -> None:
    """Everything but nvcc is real: NVRTC compiles, ptxas assembles, c++ links, all from one CUDA_HOME."""
    make_wheel(tmp_path / "wheels", "compiler-driver", "1.0", {"nvidia/cuda_nvcc/bin/nvcc": NVCC_STAND_IN})
    (tmp_path / "twelve.toml").write_text(
        CUDA_12.replace("[packages]", '[packages]\ncompiler-driver = "1.0"')
        + '[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\n'
    )
    # The check refuses it before the download; what the later stages say of the files is the point here.
    allowed = ("--allow", "toolkit-no-nvcc")
    done = envspec("build", "twelve.toml", "--python", sys.executable, *allowed, cwd=tmp_path)
    assert done.code == 0, done.err
    assert "smoke     sm_120a kernel compiled and linked, needs libcudart.so.12, libcuda.so.1" in done.err
    cuda = tmp_path / "out" / "cuda"
    for name in ("include/nv/target", "include/crt/host_config.h", "include/cub/cub.cuh", "lib64/libcudart.so",
                 "lib64/libnvrtc.so", "lib64/stubs/libcuda.so", "nvvm/libdevice/libdevice.10.bc"):  # fmt: skip
        assert (cuda / name).is_file(), name
    (tmp_path / "nvrtc.py").write_text(NVRTC)
    (tmp_path / "total.cu").write_text(CUDA_12_KERNEL)
    (tmp_path / "host.cc").write_text(CUDA_12_HOST)
    commands = (
        "python nvrtc.py total.cu total.ptx && ptxas -arch=sm_120a total.ptx -o total.cubin"
        ' && c++ -shared -fPIC -I"$CUDA_HOME/include" host.cc -o libhost.so -lcudart -lcuda'
    )
    assert envspec("run", "--", "sh", "-c", commands, cwd=tmp_path) == (0, "", "")
    assert (tmp_path / "total.cubin").read_bytes().startswith(b"\x7fELF")
    assert {"libcudart.so.12", "libcuda.so.1"} <= set(needed(tmp_path / "libhost.so"))


# ---- installed from a wheel --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """envspec in a venv of its own, from a wheel, as `uv tool install` would have it; the path of its command."""
    from envspec.uv.run import find_uv

    root = tmp_path_factory.mktemp("installed")
    checkout = Path(__file__).parents[2]
    quiet = {"check": True, "capture_output": True}
    subprocess.run([find_uv(), "build", "--wheel", "--out-dir", root / "dist", checkout], **quiet)  # type: ignore[call-overload]
    (wheel,) = (root / "dist").glob("envspec-*.whl")
    venv.create(root / "venv", with_pip=False, symlinks=True)
    python = root / "venv" / "bin" / "python"
    subprocess.run([find_uv(), "pip", "install", "--python", python, wheel], **quiet)  # type: ignore[call-overload]
    yield root / "venv" / "bin" / "envspec"


def test_the_installed_wheel_finds_its_templates_and_profiles(
    built: Built, installed: Path, tmp_path: Path
) -> None:
    def call(*args: str) -> str:
        return subprocess.run(
            [installed, *args], cwd=tmp_path, env=environment(), check=True, capture_output=True, text=True
        ).stdout

    assert re.fullmatch(r"envspec, version \d+\.\d+\.\d+\n", call("--version"))
    shipped = {row["name"]: row["path"] for row in json.loads(call("profiles", "--json"))["profiles"]}
    assert Path(shipped["rtx-pro-6000"]).read_text().startswith("# SGLang on an RTX PRO 6000")
    assert str(installed.parents[1]) in shipped["rtx-pro-6000"]
    assert Path(shipped["rtx-pro-6000"]).with_suffix(".lock").is_file()
    shutil.copy(built.root / "small.toml", tmp_path)
    shutil.copy(built.root / "small.lock", tmp_path)
    assert call("build", "small.toml", "--locked", "--python", sys.executable) == "source out/sglang_env.sh\n"
    assert (tmp_path / "out" / "sglang_env.sh").read_bytes() == (built.out / "sglang_env.sh").read_bytes()
