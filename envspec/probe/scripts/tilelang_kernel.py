"""A tilelang kernel: lowered, then compiled by this environment's nvcc."""

import _cuda
import _gpu
import tilelang
import tilelang.language as T
import torch
from tilelang import tvm
from tilelang.contrib import nvcc


@T.prim_func
def double(a: T.Tensor((1024,), "float32"), b: T.Tensor((1024,), "float32")):
    with T.Kernel(4, threads=256) as block:
        for i in T.Parallel(256):
            b[block * 256 + i] = a[block * 256 + i] * 2


target = tvm.target.Target({"kind": "cuda", "arch": f"sm_{_cuda.NUMBER}"})
with target:
    artifact = tilelang.lower(double, target=target)
cubin = nvcc.compile_cuda(
    artifact.kernel_source,
    target_format="cubin",
    arch=["-gencode", f"arch=compute_{_cuda.NUMBER},code=sm_{_cuda.NUMBER}"],
    options=[
        f"-I{tilelang.env.TILELANG_TEMPLATE_PATH}",
        f"-I{tilelang.env.CUTLASS_INCLUDE_DIR}",
        "-std=c++17",
    ],
)
assert bytes(cubin[:4]) == b"\x7fELF"
print(f"probe: compiled for sm_{_cuda.NUMBER}")

if _gpu.usable():
    kernel = tilelang.compile(double, target="cuda")
    values = torch.empty(1024, device="cuda")
    output = torch.empty_like(values)
    _gpu.plain_and_captured(
        lambda: values.normal_(),
        lambda: kernel(values, output),
        lambda: output,
        lambda: values * 2,
        tolerance=0.0,
    )
