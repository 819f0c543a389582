"""A triton kernel to a cubin, with triton's own ptxas."""

import _cuda
import _gpu
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


number = int(_cuda.NUMBER.rstrip("af"))
source = ASTSource(
    fn=double,
    signature={"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    constexprs={"BLOCK": 256},
)
compiled = triton.compile(source, target=GPUTarget("cuda", number, 32))
assert compiled.asm["cubin"][:4] == b"\x7fELF"
print(f"probe: compiled for sm_{number}")

if _gpu.usable():
    values = torch.empty(10000, device="cuda")
    output = torch.empty_like(values)
    _gpu.plain_and_captured(
        lambda: values.normal_(),
        lambda: double[(triton.cdiv(10000, 256),)](values, output, 10000, BLOCK=256),
        lambda: output,
        lambda: values * 2,
        tolerance=0.0,
    )
