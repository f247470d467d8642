"""Attention for a prompt: many queries of one sequence at once, over K and V in logical order."""

import torch
from torch import Tensor


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of a sequence's last T tokens over all its L: no token sees a later one.

    softmax(q k^T / sqrt(D)) v; q and the result are [T, Hq, D], k and v [L, Hkv, D]. Query head h
    reads KV head h // (Hq // Hkv). Computed in float32, returned in q's dtype.
    """
    (num_queries, num_heads, head_dim), (length, num_kv_heads, _) = q.shape, k.shape
    group = num_heads // num_kv_heads
    queries = q.float().view(num_queries, num_kv_heads, group, head_dim)  # [T, Hkv, G, D]
    keys, values = k.float().transpose(0, 1), v.float().transpose(0, 1)  # each [Hkv, L, D]
    rows = queries.permute(1, 2, 0, 3).reshape(num_kv_heads, group * num_queries, head_dim)  # [Hkv, G * T, D]
    scores = rows @ keys.transpose(1, 2) * head_dim**-0.5  # [Hkv, G * T, L]
    own = torch.arange(length - num_queries, length, device=q.device).repeat(group)  # [G * T], own position
    later = torch.arange(length, device=q.device) > own[:, None]  # [G * T, L]
    out = scores.masked_fill(later, float("-inf")).softmax(-1) @ values  # [Hkv, G * T, D]
    out = out.view(num_kv_heads, group, num_queries, head_dim).permute(2, 0, 1, 3)  # [T, Hkv, G, D]
    return out.reshape(q.shape).to(q.dtype)  # [T, Hq, D]
