"""A torch CUDA extension, compiled, linked and loaded."""

import _gpu
import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>
__global__ void twice(const float *in, float *out, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) out[at] = in[at] * 2.0f;
}
void run_twice(torch::Tensor in, torch::Tensor out) {
    int count = static_cast<int>(in.numel());
    twice<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        in.data_ptr<float>(), out.data_ptr<float>(), count);
}
"""
module = load_inline(
    "envspec_twice",
    cpp_sources="void run_twice(torch::Tensor in, torch::Tensor out);",
    cuda_sources=CUDA,
    functions=["run_twice"],
)
assert module.run_twice.__name__ == "run_twice"
print("probe: compiled, linked and loaded")

if _gpu.usable():
    values = torch.empty(1 << 16, device="cuda")
    output = torch.empty_like(values)
    _gpu.plain_and_captured(
        lambda: values.normal_(),
        lambda: module.run_twice(values, output),
        lambda: output,
        lambda: values * 2,
        tolerance=0.0,
    )
