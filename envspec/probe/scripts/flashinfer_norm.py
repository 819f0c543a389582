"""flashinfer's norm kernels: they include cublasLt.h, which no compiler package brings."""

import _gpu
import torch
from flashinfer.jit.norm import gen_norm_module

gen_norm_module().build(verbose=False)
print("probe: compiled and linked")

if _gpu.usable():
    import flashinfer

    values = torch.empty(16, 4096, dtype=torch.float16, device="cuda")
    weight = torch.empty(4096, dtype=torch.float16, device="cuda")
    output = torch.empty_like(values)

    def expected():
        x = values.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float()

    _gpu.plain_and_captured(
        lambda: (values.normal_(), weight.uniform_(0.5, 1.5)),
        lambda: flashinfer.norm.rmsnorm(values, weight, eps=1e-6, out=output),
        lambda: output,
        expected,
        tolerance=2e-2,
    )
