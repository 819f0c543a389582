"""The 16-bit and 8-bit types: their headers include nv/target, which no compiler package brings."""

import _cuda

_cuda.probe(
    _cuda.HARNESS
    + r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void through_three_types(const float *in, float *out, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    __half half = __hmul(__float2half(in[at]), __float2half(0.5f));
    __nv_bfloat16 brain = __float2bfloat16(__half2float(half));
    out[at] = float(__nv_fp8_e4m3(__bfloat162float(brain)));
}

extern "C" int probe_run(char *words, int size) {
    const int count = 16;  // 0.5 to 8.5 in halves: exact in all three types
    float host[count], *in, *out;
    TRY(cudaMalloc(&in, sizeof host));
    TRY(cudaMalloc(&out, sizeof host));
    return plain_and_captured(
        [&](int round) {
            for (int i = 0; i < count; ++i) host[i] = static_cast<float>(i % 8 + round);
            cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
        },
        [&](cudaStream_t stream) { through_three_types<<<1, count, 0, stream>>>(in, out, count); },
        [&](int round) {
            cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
            for (int i = 0; i < count; ++i)
                if (host[i] != 0.5f * static_cast<float>(i % 8 + round)) return true;
            return false;
        },
        words, size);
}
""",
    "cudart",
)
