"""The headers that DeepGEMM's JIT includes in every kernel, with its include paths: cutlass over this toolkit's CCCL.

DeepGEMM takes the architecture from the device, and has kernels for Hopper and data centre Blackwell only. So what is
compiled without a GPU is what its kernels share; on one of those GPUs a matrix product is compiled and run, too.
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

import _cuda

# Not imported: that would load its native module, which asks for the driver.
include = Path(importlib.util.find_spec("deep_gemm").submodule_search_locations[0], "include")
found = [name for name in ("cutlass/cutlass.h", "cute/tensor.hpp") if (include / name).exists()]
if not found:
    sys.exit(f"RuntimeError: there are no cutlass headers in {include}")
source = "".join(f"#include <{name}>\n" for name in found)
source += "#include <cuda/std/utility>\n__global__ void nothing(cutlass::half_t *x) { *x = cutlass::half_t(1.0f); }\n"
with tempfile.TemporaryDirectory() as work:
    path = Path(work, "headers.cu")
    path.write_text(source)
    flags = ["-std=c++20", "--expt-relaxed-constexpr", "--expt-extended-lambda", f"-I{include}"]
    _cuda.nvcc("-cubin", *flags, f"-I{_cuda.CUDA_HOME}/include/cccl", str(path), "-o", f"{path}bin")
print(f"probe: compiled for sm_{_cuda.NUMBER}")

if _cuda.usable() and _cuda.DOTTED.startswith(("9.", "10.")):
    import _gpu
    import deep_gemm
    import torch

    left = torch.empty(128, 512, dtype=torch.bfloat16, device="cuda")
    right = torch.empty(256, 512, dtype=torch.bfloat16, device="cuda")
    output = torch.empty(128, 256, dtype=torch.bfloat16, device="cuda")
    _gpu.plain_and_captured(
        lambda: (left.normal_(), right.normal_()),
        lambda: deep_gemm.bf16_gemm_nt(left, right, output),
        lambda: output,
        lambda: left.float() @ right.float().T,
        tolerance=1.0,  # bfloat16 keeps 8 bits of results that go up to about 100
    )
