"""How big is a token? Bytes per token, bytes per block, blocks in a budget, requests at once.

`ModelShape` holds what a model's config.json says about its KV cache; everything else is arithmetic on
it. The neighbours that this module also offers: `budget` (what fits a card, and the inverse questions),
`waste` (the last block, the block table), `paging_savings` (growing by copy, shared prefixes).
"""

from dataclasses import dataclass, replace

from kvlab.budget import (
    ByteRange,
    MemoryAccount,
    available_bytes,
    budget_for_requests,
    budgets_that_fit,
    memory_account,
    request_problem,
    usable_blocks,
)
from kvlab.layer_groups import DEFAULT_IN_FLIGHT, Plan, plan_groups
from kvlab.layer_kinds import Layer, ceil_div
from kvlab.model_config import Config, ConfigError, read_heads, read_layers
from kvlab.paging_savings import CopyCost, PrefixSaving, grow_by_copy, shared_prefix
from kvlab.units import dtype_bytes
from kvlab.waste import (
    WasteRow,
    blocks_for,
    fragmentation_table,
    last_block_waste,
    table_bytes,
    waste_bound,
)

__all__ = [
    "ByteRange",
    "ConfigError",
    "CopyCost",
    "Layer",
    "MemoryAccount",
    "ModelShape",
    "Plan",
    "PrefixSaving",
    "WasteRow",
    "available_bytes",
    "blocks_for",
    "budget_for_requests",
    "budgets_that_fit",
    "fragmentation_table",
    "grow_by_copy",
    "last_block_waste",
    "memory_account",
    "request_problem",
    "shared_prefix",
    "table_bytes",
    "usable_blocks",
    "waste_bound",
]


@dataclass(frozen=True)
class ModelShape:
    """The part of a model that decides its KV cache: its layers, and the dtype that it is stored in.

    In every method `kv_dtype` is a name such as "float16" or "fp8"; None or "auto" means the model's own.
    """

    layers: tuple[Layer, ...]
    dtype: str | None = None
    name: str = "model"
    num_query_heads: int | None = None
    max_model_len: int | None = None

    @classmethod
    def from_config(cls, config) -> "ModelShape":
        """The shape in a Hugging Face config.json: a path, a model's folder, or the parsed dict.

        Reads nested `text_config`; takes head_dim or hidden_size / heads; KV heads default to query heads;
        layer types, windows, chunks, linear attention and MLA are told apart. Raises ConfigError (a
        ValueError) that names the key which is missing, negative or not a number.
        """
        found = Config(config)
        layers = read_layers(found)
        latent = found.get("kv_lora_rank") is not None
        has_heads = not latent and any(layer.is_attention for layer in layers)
        length = found.get("max_position_embeddings")
        return cls(
            layers=layers,
            dtype=str(found.get("dtype")).removeprefix("torch.") if found.get("dtype") else None,
            name=str(found.get("_name_or_path") or found.get("model_type") or "model"),
            num_query_heads=read_heads(found)[0] if has_heads else None,
            max_model_len=None if length is None else found.count("max_position_embeddings"),
        )

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    @property
    def attention_layers(self) -> tuple[Layer, ...]:
        """The layers that keep K and V; a linear layer keeps a state of fixed size instead."""
        return tuple(layer for layer in self.layers if layer.is_attention)

    @property
    def num_kv_heads(self) -> int:
        """KV heads of the first attention layer (0 when there is none)."""
        return self.attention_layers[0].num_kv_heads if self.attention_layers else 0

    @property
    def head_dim(self) -> int:
        """Numbers per K head of the first attention layer (0 when there is none)."""
        return self.attention_layers[0].head_size if self.attention_layers else 0

    def number_bytes(self, kv_dtype: str | None = None) -> int:
        """Bytes of one stored number. ValueError when neither the caller nor the config names a dtype."""
        if kv_dtype is not None and str(kv_dtype) != "auto":
            return dtype_bytes(kv_dtype)
        if self.dtype is None:
            raise ValueError(
                f"The configuration of {self.name} names no dtype: say which, for example kv_dtype='float16'."
            )
        return dtype_bytes(self.dtype)

    def kv_bytes_per_token(self, kv_dtype: str | None = None) -> int:
        """Bytes that one token adds: the sum over the attention layers of kv_heads * (K + V) * bytes.

        For equal layers that is 2 * layers * kv_heads * head_dim * bytes. It counts KV heads, not query
        heads, and no linear layers. Layers with a window count too: they write each token, but keep it
        only for a while, so for them this times the length is an upper bound.
        Source: PagedAttention paper (arXiv:2309.06180), section 3: 2 * 5120 * 40 * 2 = 819,200 B for OPT-13B.
        """
        number = self.number_bytes(kv_dtype)
        return sum(layer.token_bytes(number) for layer in self.layers)

    def page_bytes(self, block_size: int, kv_dtype: str | None = None) -> int:
        """Bytes of one block in ONE layer, the first with attention: 2 * B * kv_heads * head_dim * bytes."""
        if not self.attention_layers:
            raise ValueError(f"{self.name} has no attention layers, so it has no KV pages.")
        return block_size * self.attention_layers[0].token_bytes(self.number_bytes(kv_dtype))

    def plan(self, block_size: int, kv_dtype: str | None = None) -> Plan:
        """The layer groups that share one pool of blocks (a single group for most models)."""
        number = self.number_bytes(kv_dtype)

        def state_bytes(layer: Layer) -> int:
            return layer.state_bytes(self.number_bytes(), dtype_bytes)

        return plan_groups(self.layers, block_size, number, state_bytes_of=state_bytes)

    def block_bytes(self, block_size: int, kv_dtype: str | None = None) -> int:
        """Bytes of one block of the pool: the page of each layer of one group, summed.

        With one kind of layer: B * kv_bytes_per_token. In a hybrid model a block serves one group at a time,
        so only that group's layers count; and a block that must hold a linear state may cover more than
        `block_size` tokens (`plan(...).block_size` tells). Source: vLLM, bytes per block.
        """
        return self.plan(block_size, kv_dtype).block_bytes

    def num_blocks(self, available_bytes: int, block_size: int, kv_dtype: str | None = None) -> int:
        """Whole blocks in a budget: available // block_bytes. Source: vLLM, get_num_blocks."""
        return self.plan(block_size, kv_dtype).num_blocks(available_bytes)

    def remainder_bytes(self, available_bytes: int, block_size: int, kv_dtype: str | None = None) -> int:
        """Bytes of the budget that are too few for one more block: available % block_bytes."""
        return available_bytes % self.block_bytes(block_size, kv_dtype)

    def capacity_tokens(self, available_bytes: int, block_size: int, kv_dtype: str | None = None) -> int:
        """Tokens that fit when all layers keep every token: num_blocks * B.

        Raises ValueError for a hybrid model, whose capacity depends on how long the requests are: use
        `plan(...).logged_tokens(num_blocks, length)`.
        """
        plan = self.plan(block_size, kv_dtype)
        if plan.is_hybrid or plan.groups[0].kind != "full":
            raise ValueError(
                f"{self.name} has layers that forget, so its capacity depends on the requests' length: "
                "use plan(...).logged_tokens(num_blocks, length)."
            )
        return plan.num_blocks(available_bytes) * plan.block_size

    def max_concurrency(
        self,
        available_bytes: int,
        block_size: int,
        max_model_len: int,
        kv_dtype: str | None = None,
        *,
        in_flight: int = DEFAULT_IN_FLIGHT,
    ) -> float:
        """Requests of max_model_len tokens at once, not rounded: num_blocks / blocks of one such request.

        Blocks of one request: ceil(max_model_len / B), summed over the groups with their windows.
        Source: vLLM, get_max_concurrency_for_kv_cache_config. It counts the null block, as the log does.
        """
        plan = self.plan(block_size, kv_dtype)
        return plan.concurrency(plan.num_blocks(available_bytes), max_model_len, in_flight)

    def request_bytes(self, length: int, kv_dtype: str | None = None, *, in_flight: int = 1) -> int:
        """Bytes that one request of `length` tokens keeps, without blocks: windows cut, states added once."""
        number = self.number_bytes(kv_dtype)
        kept = sum(layer.most_tokens(length, in_flight) * layer.token_bytes(number) for layer in self.layers)
        linear = [layer for layer in self.layers if not layer.is_attention]
        return kept + sum(layer.state_bytes(self.number_bytes(), dtype_bytes) for layer in linear)

    def per_rank(self, tensor_parallel: int) -> "ModelShape":
        """The shape that each of `tensor_parallel` GPUs holds: KV heads divided, or repeated when too few."""
        if tensor_parallel < 1:
            raise ValueError(f"tensor_parallel must be at least 1, not {tensor_parallel}.")
        if tensor_parallel == 1:
            return self
        heads = self.num_query_heads and ceil_div(self.num_query_heads, tensor_parallel)
        layers = tuple(layer.per_rank(tensor_parallel) for layer in self.layers)
        return replace(self, layers=layers, num_query_heads=heads)
