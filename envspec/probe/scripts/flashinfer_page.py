"""flashinfer's append to a paged key-value cache."""

import _gpu
import torch
from flashinfer.jit.page import gen_page_module

gen_page_module().build(verbose=False)
print("probe: compiled and linked")

if _gpu.usable():
    import flashinfer

    tokens, heads, dimension, page = 32, 4, 128, 16
    device = torch.device("cuda")
    half = torch.float16
    keys, values = (torch.empty(tokens, heads, dimension, dtype=half, device=device) for _ in range(2))
    cache = torch.zeros(tokens // page, 2, page, heads, dimension, dtype=half, device=device)
    numbers = torch.arange(tokens, dtype=torch.int32, device=device)
    one_sequence = torch.zeros_like(numbers)
    indptr = torch.tensor([0, tokens // page], dtype=torch.int32, device=device)
    indices = torch.arange(tokens // page, dtype=torch.int32, device=device)
    last = torch.tensor([page], dtype=torch.int32, device=device)
    _gpu.plain_and_captured(
        lambda: (keys.normal_(), values.normal_()),
        lambda: flashinfer.append_paged_kv_cache(
            keys, values, one_sequence, numbers, cache, indices, indptr, last, "NHD"
        ),
        lambda: cache,
        lambda: torch.stack([t.view(-1, page, heads, dimension) for t in (keys, values)], dim=1),
        tolerance=0.0,
    )
