"""flashinfer's batch decode attention."""

import torch
from flashinfer.jit.attention.modules import gen_batch_decode_module

half = torch.float16
gen_batch_decode_module(half, half, half, torch.int32, 128, 128, 0, False, False).build(verbose=False)
