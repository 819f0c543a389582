"""flashinfer's batch decode attention: head dimension 128, 16-bit floats, no sliding window, no soft cap."""

import _gpu
import torch
from flashinfer.jit.attention.modules import gen_batch_decode_module

half = torch.float16
gen_batch_decode_module(half, half, half, torch.int32, 128, 128, 0, False, False).build(verbose=False)
print("probe: compiled and linked")

if _gpu.usable():
    import flashinfer

    batch, heads, dimension, page, pages_each = 4, 8, 128, 16, 3
    device = torch.device("cuda")
    pages = batch * pages_each
    query = torch.empty(batch, heads, dimension, dtype=half, device=device)
    cache = torch.empty(pages, 2, page, heads, dimension, dtype=half, device=device)
    output = torch.empty_like(query)
    indptr = torch.arange(batch + 1, dtype=torch.int32, device=device) * pages_each
    indices = torch.arange(pages, dtype=torch.int32, device=device)
    last = torch.full((batch,), page, dtype=torch.int32, device=device)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        torch.zeros(128 << 20, dtype=torch.uint8, device=device),
        "NHD",
        use_cuda_graph=True,
        paged_kv_indptr_buffer=indptr.clone(),
        paged_kv_indices_buffer=indices.clone(),
        paged_kv_last_page_len_buffer=last.clone(),
    )
    wrapper.plan(indptr, indices, last, heads, heads, dimension, page, q_data_type=half, kv_data_type=half)

    def expected():
        rows = cache.view(batch, pages_each, 2, page, heads, dimension).float()
        keys = rows[:, :, 0].reshape(batch, -1, heads, dimension)
        values = rows[:, :, 1].reshape(batch, -1, heads, dimension)
        scores = torch.einsum("bhd,blhd->bhl", query.float(), keys) / dimension**0.5
        return torch.einsum("bhl,blhd->bhd", scores.softmax(-1), values)

    _gpu.plain_and_captured(
        lambda: (query.normal_(), cache.normal_()),
        lambda: output.copy_(wrapper.run(query, cache)),
        lambda: output,
        expected,
        tolerance=1e-2,
    )
