"""A batch of sequences in scattered blocks, with poison wherever decode attention must not look."""

import math

import torch

from kvlab.attention import attention_oracle, paged_decode

HKV = 2


class Batch:
    """Sequences of the given lengths in scattered blocks. All that no sequence owns is poison: NaN, or the
    largest number for float8, and each row's unused table entries are garbage."""

    def __init__(
        self, lengths, block_size, head_dim=32, group=1, kv_dtype=torch.float32, q_dtype=None, seed=0
    ):
        generator = torch.Generator().manual_seed(seed)
        self.lengths, self.block_size = lengths, block_size
        blocks = [-(-length // block_size) for length in lengths]
        total = sum(blocks) + 3
        shape = (total, block_size, HKV, head_dim)
        poison = 448.0 if kv_dtype == torch.float8_e4m3fn else math.nan
        self.k_cache = torch.full(shape, poison).to(kv_dtype)  # [N, B, Hkv, D]
        self.v_cache = torch.full(shape, poison).to(kv_dtype)  # [N, B, Hkv, D]
        order = torch.randperm(total, generator=generator).tolist()
        width = max(blocks, default=0) + 2
        self.tables = torch.full((len(lengths), width), -1, dtype=torch.int32)  # [S, max_blocks]
        self.tables[1::2] = 2**31 - 1
        self.k, self.v = [], []
        for row, (length, count) in enumerate(zip(lengths, blocks, strict=True)):
            table, order = order[:count], order[count:]
            self.tables[row, :count] = torch.tensor(table, dtype=torch.int32)
            k, v = torch.randn(2, length, HKV, head_dim, generator=generator).to(kv_dtype)  # [T, Hkv, D]
            for t in range(length):
                self.k_cache[table[t // block_size], t % block_size] = k[t]
                self.v_cache[table[t // block_size], t % block_size] = v[t]
            self.k.append(k)
            self.v.append(v)
        self.lens = torch.tensor(lengths, dtype=torch.int32)
        q = torch.randn(len(lengths), HKV * group, head_dim, generator=generator)
        self.q = q.to(q_dtype or torch.float32)  # [S, Hq, D]

    def decode(self, **options):
        return paged_decode(self.q, self.k_cache, self.v_cache, self.tables, self.lens, **options)

    def oracle(self, k_scale=1.0, v_scale=1.0, **options):
        rows = zip(self.q, self.k, self.v, strict=True)
        return torch.stack(
            [attention_oracle(q, k.double() * k_scale, v.double() * v_scale, **options) for q, k, v in rows]
        )
