"""A cubin, and a library that hands it to the driver itself: a link against libcuda, for which a stub has to be there."""

import tempfile
from pathlib import Path

import _cuda

KERNEL = r"""
extern "C" __global__ void add_one(int *values) { values[threadIdx.x] += 1; }
"""

with tempfile.TemporaryDirectory() as work:
    source = Path(work, "one.cu")
    source.write_text(KERNEL)
    _cuda.nvcc("-cubin", str(source), "-o", f"{work}/one.cubin")
    image = Path(work, "one.cubin").read_bytes()

assert image[:4] == b"\x7fELF", "nvcc gave no cubin"
array = ",".join(map(str, image))
_cuda.probe(
    _cuda.HARNESS
    + f"alignas(16) static const unsigned char image[] = {{{array}}};"
    + r"""
#include <cuda.h>

extern "C" int probe_run(char *words, int size) {
    CUmodule module;
    CUfunction function;
    int *values, host[32];
    TRY(cudaMalloc(&values, sizeof host));  // makes the primary context current
    if (cuModuleLoadData(&module, image) != CUDA_SUCCESS ||
        cuModuleGetFunction(&function, module, "add_one") != CUDA_SUCCESS) {
        std::snprintf(words, size, "the driver does not load the cubin");
        return 4;
    }
    void *arguments[] = {&values};
    return plain_and_captured(
        [&](int round) {
            for (int i = 0; i < 32; ++i) host[i] = i * round;
            cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
        },
        [&](cudaStream_t stream) { cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr); },
        [&](int round) {
            cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost);
            for (int i = 0; i < 32; ++i)
                if (host[i] != i * round + 1) return true;
            return false;
        },
        words, size);
}
""",
    "cudart",
    "cuda",
)
