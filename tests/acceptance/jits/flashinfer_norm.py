"""flashinfer's norm kernels: they include cublasLt.h, which no compiler package brings."""

from flashinfer.jit.norm import gen_norm_module

gen_norm_module().build(verbose=False)
