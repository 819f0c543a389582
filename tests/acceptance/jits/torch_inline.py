"""A torch CUDA extension, compiled, linked and loaded."""

from torch.utils.cpp_extension import load_inline

CUDA = """
#include <torch/extension.h>
__global__ void twice(float *v, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) v[i] *= 2.f; }
void run_twice(torch::Tensor t) { twice<<<(t.numel() + 255) / 256, 256>>>(t.data_ptr<float>(), t.numel()); }
"""
module = load_inline(
    "envspec_twice",
    cpp_sources="void run_twice(torch::Tensor t);",
    cuda_sources=CUDA,
    functions=["run_twice"],
)
assert module.run_twice.__name__ == "run_twice"
