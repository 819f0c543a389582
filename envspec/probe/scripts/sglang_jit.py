"""An SGLang kernel through SGLang's own load_jit, for the architecture of the environment."""

import _cuda
import _gpu
import torch

try:  # sglang 0.5.23
    from sglang.kernels.jit.utils import override_jit_cuda_arch
    from sglang.kernels.ops.layernorm.norm import _jit_rmsnorm_module, rmsnorm
except ModuleNotFoundError:  # sglang 0.5.12
    from sglang.jit_kernel.norm import _jit_rmsnorm_module, rmsnorm
    from sglang.jit_kernel.utils import override_jit_cuda_arch

major, minor = _cuda.DOTTED.rstrip("af").split(".")
with override_jit_cuda_arch(int(major), int(minor), _cuda.DOTTED[len(f"{major}.{minor}") :]):
    _jit_rmsnorm_module(4096, torch.bfloat16)
print("probe: compiled, linked and loaded")

if _gpu.usable():
    values = torch.empty(16, 4096, dtype=torch.bfloat16, device="cuda")
    weight = torch.empty(4096, dtype=torch.bfloat16, device="cuda")
    output = torch.empty_like(values)

    def expected():
        x = values.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float()

    _gpu.plain_and_captured(
        lambda: (values.normal_(), weight.uniform_(0.5, 1.5)),
        lambda: rmsnorm(values, weight, output, 1e-6),
        lambda: output,
        expected,
        tolerance=1e-1,
    )
