"""NVRTC, as DeepGEMM and cuda-python use it: found by the loader, with its builtins, and with the toolkit's headers."""

import ctypes
import re
from pathlib import Path

import _cuda

SOURCE = rb"""
#include <cuda_fp16.h>
extern "C" __global__ void halve(__half *values) { values[threadIdx.x] = __hmul(values[threadIdx.x], __float2half(0.5f)); }
"""


def library():
    """libnvrtc by its soname, as the loader finds it: the environment has to have put it on its path."""
    home = Path(_cuda.CUDA_HOME)
    files = [file for name in ("lib64", "lib") for file in home.glob(f"{name}/libnvrtc.so.*")]
    names = [file.name for file in files if re.fullmatch(r"libnvrtc\.so\.\d+", file.name)]
    assert names, f"there is no libnvrtc in {home}"
    return ctypes.CDLL(names[0])


nvrtc = library()
program = ctypes.c_void_p()
assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"halve.cu", 0, None, None) == 0
options = [
    f"--gpu-architecture=sm_{_cuda.NUMBER}",
    f"-I{_cuda.CUDA_HOME}/include",
    f"-I{_cuda.CUDA_HOME}/include/cccl",
]
failed = nvrtc.nvrtcCompileProgram(
    program, len(options), (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
)
size = ctypes.c_size_t()
nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
log = ctypes.create_string_buffer(max(size.value, 1))
nvrtc.nvrtcGetProgramLog(program, log)
print(log.value.decode(errors="replace"))
nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
assert failed == 0, nvrtc.nvrtcGetErrorString(failed).decode()
assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
cubin = ctypes.create_string_buffer(size.value)
assert nvrtc.nvrtcGetCUBIN(program, cubin) == 0
assert cubin.raw[:4] == b"\x7fELF"
print(f"probe: compiled for sm_{_cuda.NUMBER}")
