"""A triton kernel to a cubin, with triton's own ptxas."""

import os

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


number = int("".join(c for c in os.environ["TORCH_CUDA_ARCH_LIST"] if c.isdigit()))
source = ASTSource(
    fn=double, signature={"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, constexprs={"BLOCK": 256}
)
compiled = triton.compile(source, target=GPUTarget("cuda", number, 32))
assert compiled.asm["cubin"][:4] == b"\x7fELF"
