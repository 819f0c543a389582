"""CUB: header for header the heaviest user of CCCL, which refuses a compiler of another release than the headers'."""

import _cuda

_cuda.probe(
    _cuda.HARNESS
    + r"""
#include <cub/cub.cuh>

extern "C" int probe_run(char *words, int size) {
    const int count = 1 << 16;
    static int host[count];
    int *in, *sum, found = 0;
    void *room = nullptr;
    size_t bytes = 0;
    TRY(cudaMalloc(&in, sizeof host));
    TRY(cudaMalloc(&sum, sizeof(int)));
    TRY(cub::DeviceReduce::Sum(room, bytes, in, sum, count));
    TRY(cudaMalloc(&room, bytes));
    return plain_and_captured(
        [&](int round) {
            for (int i = 0; i < count; ++i) host[i] = i % 7 + round;
            cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
        },
        [&](cudaStream_t stream) { cub::DeviceReduce::Sum(room, bytes, in, sum, count, stream); },
        [&](int round) {
            int wanted = 0;
            for (int i = 0; i < count; ++i) wanted += i % 7 + round;
            cudaMemcpy(&found, sum, sizeof found, cudaMemcpyDeviceToHost);
            return found != wanted;
        },
        words, size);
}
""",
    "cudart",
)
