"""An SGLang kernel through SGLang's own load_jit, for the architecture of the environment."""

import os

import torch
from sglang.jit_kernel.norm import _jit_rmsnorm_module
from sglang.jit_kernel.utils import override_jit_cuda_arch

arch = os.environ["TVM_FFI_CUDA_ARCH_LIST"]
major, minor = arch.rstrip("af").split(".")
with override_jit_cuda_arch(int(major), int(minor), arch[len(f"{major}.{minor}") :]):
    _jit_rmsnorm_module(4096, torch.bfloat16)
