"""A tilelang kernel: lowered, then compiled by this environment's nvcc."""

import os

import tilelang
import tilelang.language as T
from tilelang import tvm
from tilelang.contrib import nvcc


@T.prim_func
def double(a: T.Tensor((1024,), "float32"), b: T.Tensor((1024,), "float32")):
    with T.Kernel(4, threads=256) as block:
        for i in T.Parallel(256):
            b[block * 256 + i] = a[block * 256 + i] * 2


number = os.environ["TORCH_CUDA_ARCH_LIST"].replace(".", "")
target = tvm.target.Target({"kind": "cuda", "arch": f"sm_{number}"})
with target:
    artifact = tilelang.lower(double, target=target)
cubin = nvcc.compile_cuda(
    artifact.kernel_source,
    target_format="cubin",
    arch=["-gencode", f"arch=compute_{number},code=sm_{number}"],
    options=[
        f"-I{tilelang.env.TILELANG_TEMPLATE_PATH}",
        f"-I{tilelang.env.CUTLASS_INCLUDE_DIR}",
        "-std=c++17",
    ],
)
assert bytes(cubin[:4]) == b"\x7fELF"
