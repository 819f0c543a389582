"""flashinfer's batch prefill attention, with the backend that SM120 uses."""

import torch
from flashinfer.jit.attention.modules import gen_batch_prefill_module

half = torch.float16
gen_batch_prefill_module("fa2", half, half, half, torch.int32, 128, 128, 0, False, False, False).build(
    verbose=False
)
