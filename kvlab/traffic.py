"""What one decode step of attention has to move and to compute, from its shape alone. No tensors here."""

from __future__ import annotations

from typing import NamedTuple

ELEMENT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1}
TABLE_ENTRY_BYTES = 4  # int32


class DecodeShape(NamedTuple):
    """One layer's attention in a decode step: one new token for each of `num_seqs` sequences.

    context: tokens of each sequence, the new one included. dtype: of K and V, a key of `ELEMENT_BYTES`.
    """

    num_seqs: int
    context: int
    num_q_heads: int = 32
    num_kv_heads: int = 8
    head_dim: int = 128
    block_size: int = 16
    dtype: str = "float32"

    @property
    def kv_bytes(self) -> int:
        """K and V of every token once: 2 * S * T * Hkv * D * bytes of a number."""
        numbers = self.num_seqs * self.context * self.num_kv_heads * self.head_dim
        return 2 * numbers * ELEMENT_BYTES[self.dtype]

    @property
    def blocks_per_seq(self) -> int:
        return -(-self.context // self.block_size)

    @property
    def table_bytes(self) -> int:
        """The block tables and the lengths."""
        return self.num_seqs * (self.blocks_per_seq + 1) * TABLE_ENTRY_BYTES

    @property
    def query_bytes(self) -> int:
        """q in and the output back. Beside float8 K and V they are bfloat16."""
        element = max(2, ELEMENT_BYTES[self.dtype])
        return 2 * self.num_seqs * self.num_q_heads * self.head_dim * element

    @property
    def must_move(self) -> int:
        """Bytes that any way of doing this step moves at least: all of the above, each once."""
        return self.kv_bytes + self.table_bytes + self.query_bytes

    @property
    def operations(self) -> int:
        """Multiplications and additions: two for a score, two for a weighted value, for each query head."""
        return 4 * self.num_seqs * self.context * self.num_q_heads * self.head_dim

    @property
    def intensity(self) -> float:
        """Operations for each byte that must move."""
        return self.operations / self.must_move

    def check(self) -> DecodeShape:
        """Itself; ValueError with a sentence when no such step exists."""
        if self.dtype not in ELEMENT_BYTES:
            raise ValueError(f"dtype must be one of {', '.join(ELEMENT_BYTES)}, not {self.dtype!r}.")
        for name in self._fields[:-1]:
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {getattr(self, name)!r}.")
        if self.num_q_heads % self.num_kv_heads:
            raise ValueError(
                f"{self.num_q_heads} query heads cannot share {self.num_kv_heads} KV heads: the number of "
                "query heads must be a multiple of the number of KV heads."
            )
        return self


def grow_bytes(shape: DecodeShape) -> tuple[int, int]:
    """torch.cat growth by the step's one token: (bytes of old tokens copied, bytes at the peak).

    The old K and V and the new ones exist together; counted is one layer of all sequences.
    """
    old = shape.kv_bytes // shape.context * (shape.context - 1)
    return old, old + shape.kv_bytes
