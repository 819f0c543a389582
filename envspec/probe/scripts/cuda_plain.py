"""A kernel through nvcc, linked against cudart alone."""

import _cuda

_cuda.probe(
    _cuda.HARNESS
    + r"""
__global__ void twice(const float *in, float *out, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) out[at] = in[at] * 2.0f;
}

extern "C" int probe_run(char *words, int size) {
    const int count = 1 << 16;
    static float host[count];
    float *in, *out;
    TRY(cudaMalloc(&in, sizeof host));
    TRY(cudaMalloc(&out, sizeof host));
    return plain_and_captured(
        [&](int round) {
            for (int i = 0; i < count; ++i) host[i] = static_cast<float>(i + round);
            cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
        },
        [&](cudaStream_t stream) { twice<<<count / 256, 256, 0, stream>>>(in, out, count); },
        [&](int round) {
            cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
            for (int i = 0; i < count; ++i)
                if (host[i] != 2.0f * static_cast<float>(i + round)) return true;
            return false;
        },
        words, size);
}
""",
    "cudart",
)
