"""What one layer of a model keeps for a request: four kinds of layer, one formula each.

| kind    | keeps                                            | grows with the text |
|---------|--------------------------------------------------|---------------------|
| full    | K and V of every token                           | for ever            |
| sliding | K and V of the last `window` tokens              | up to the window    |
| chunked | K and V of the current chunk of `window` tokens  | up to the chunk     |
| linear  | one recurrent state of a fixed size              | never               |

Multi-head latent attention (MLA) is a full layer with one KV head that keeps one compressed vector
and no separate V, so `head_size_v` is 0.
"""

from dataclasses import dataclass, replace

KINDS = ("full", "sliding", "chunked", "linear")


def ceil_div(count: int, size: int) -> int:
    """count / size, rounded up, in whole numbers."""
    return -(-count // size)


@dataclass(frozen=True)
class Layer:
    """One layer. `head_size` and `head_size_v` are numbers of K and of V per KV head and token.

    `state` of a linear layer: (count of numbers, dtype name or None for the model's own) per part; None
    when the configuration does not tell, which only matters once the state's bytes are asked for.
    """

    kind: str
    num_kv_heads: int = 0
    head_size: int = 0
    head_size_v: int = 0
    window: int | None = None
    state: tuple[tuple[int, str | None], ...] | None = None

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is not a kind of layer. Known: {', '.join(KINDS)}.")
        if self.kind in ("sliding", "chunked") and not (self.window and self.window > 0):
            raise ValueError(f"A {self.kind} layer needs a window of at least 1 token, not {self.window!r}.")
        if self.kind != "linear" and (self.num_kv_heads < 1 or self.head_size < 1 or self.head_size_v < 0):
            raise ValueError(
                f"A {self.kind} layer needs KV heads and a head size of at least 1, but has "
                f"{self.num_kv_heads} heads of {self.head_size} (K) and {self.head_size_v} (V) numbers."
            )

    @property
    def is_attention(self) -> bool:
        return self.kind != "linear"

    def token_bytes(self, number_bytes: int) -> int:
        """Bytes that one token adds: kv_heads * (K numbers + V numbers) * bytes a number; 0 for linear.

        Source: vLLM's page size, `page = kv_heads * B * (head_size_k + head_size_v) * dtype bytes`.
        """
        return self.num_kv_heads * (self.head_size + self.head_size_v) * number_bytes

    def state_bytes(self, model_bytes: int, bytes_of) -> int:
        """Bytes of the fixed state of a linear layer: the sum of its parts. `bytes_of(dtype name)` -> int."""
        if self.is_attention:
            return 0
        if self.state is None:
            raise ValueError(
                "The size of this model's linear-attention state is not in its configuration "
                "(linear_num_key_heads, linear_num_value_heads, linear_key_head_dim, linear_value_head_dim, "
                "linear_conv_kernel_dim), so its blocks cannot be sized. Bytes per token still can."
            )
        return sum(count * (bytes_of(dtype) if dtype else model_bytes) for count, dtype in self.state)

    def most_tokens(self, length: int, in_flight: int) -> int:
        """The most tokens whose K and V this layer holds for a request of `length` tokens.

        full: length; sliding: min(W - 1 + in_flight, length); chunked: min(chunk + in_flight, length);
        linear: 0. `in_flight` is the number of tokens that one step may add (vLLM: max_num_batched_tokens).
        Source: vLLM, `SlidingWindowSpec` and `ChunkedLocalAttentionSpec`, max_memory_usage_bytes.
        """
        if self.kind == "full":
            return length
        if self.kind == "sliding":
            return min(self.window - 1 + in_flight, length)
        return min(self.window + in_flight, length) if self.kind == "chunked" else 0

    def blocks_for(self, length: int, block_size: int, in_flight: int, state_blocks: int = 1) -> int:
        """The most blocks of this layer that one request of `length` tokens holds.

        full: ceil(length / B); sliding: ceil(min(W - 1 + in_flight, length) / B) + 1, the extra one because
        a window need not start at a block's edge; chunked: ceil(min(chunk + in_flight, length) / B);
        linear: `state_blocks`, one state a request (vLLM keeps 2 when it also caches prefixes).
        """
        if self.kind == "linear":
            return state_blocks
        blocks = ceil_div(self.most_tokens(length, in_flight), block_size)
        return blocks + 1 if self.kind == "sliding" else blocks

    def per_rank(self, tensor_parallel: int) -> "Layer":
        """The share of this layer that one of `tensor_parallel` GPUs keeps.

        KV heads are divided, and repeated when there are more GPUs than heads; a latent (MLA) cache has
        one head, so every GPU keeps all of it; a linear state is divided.
        """
        if not self.is_attention:
            parts = self.state and tuple((ceil_div(n, tensor_parallel), dtype) for n, dtype in self.state)
            return replace(self, state=parts)
        heads = self.num_kv_heads
        if heads % tensor_parallel and tensor_parallel % heads:
            raise ValueError(
                f"{heads} KV heads cannot be divided over {tensor_parallel} GPUs: "
                "one number must divide the other."
            )
        return replace(self, num_kv_heads=max(1, heads // tensor_parallel))
