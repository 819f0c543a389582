"""flashinfer's batch prefill attention with FlashAttention 2, the backend that every architecture has."""

import _gpu
import torch
from flashinfer.jit.attention.modules import gen_batch_prefill_module

half = torch.float16
gen_batch_prefill_module("fa2", half, half, half, torch.int32, 128, 128, 0, False, False, False).build(
    verbose=False
)
print("probe: compiled and linked")

if _gpu.usable():
    import flashinfer

    batch, length, heads, dimension = 2, 32, 8, 128
    device = torch.device("cuda")
    shape = (batch * length, heads, dimension)
    query, keys, values = (torch.empty(shape, dtype=half, device=device) for _ in range(3))
    output = torch.empty_like(query)
    indptr = torch.arange(batch + 1, dtype=torch.int32, device=device) * length
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        torch.zeros(128 << 20, dtype=torch.uint8, device=device),
        "NHD",
        use_cuda_graph=True,
        qo_indptr_buf=indptr.clone(),
        kv_indptr_buf=indptr.clone(),
        backend="fa2",
    )
    wrapper.plan(indptr, indptr, heads, heads, dimension, causal=True, q_data_type=half)

    def expected():
        q, k, v = (t.float().view(batch, length, heads, dimension) for t in (query, keys, values))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / dimension**0.5
        later = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        return torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(shape)

    _gpu.plain_and_captured(
        lambda: (query.normal_(), keys.normal_(), values.normal_()),
        lambda: output.copy_(wrapper.run(query, keys, values)),
        lambda: output,
        expected,
        tolerance=1e-2,
    )
