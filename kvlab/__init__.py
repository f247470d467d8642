"""kvlab: learn how paged KV caches work by building one.

The public names below load on first use, so that `import kvlab` costs neither torch nor numpy.
"""

from importlib import import_module

__version__ = "0.1.0"

_EXPORTS = {
    "block_pool": ("BlockPool", "Event", "InvariantError", "OutOfBlocks"),
    "prefix_cache": ("ExtraKeys", "PrefixCache", "PrefixStats", "sha256", "toy_hash"),
    "block_manager": ("BlockManager",),
    "block_table": ("BlockCopy", "Growth", "Slot"),
    "reservation": ("Reservation",),
    "sizing": ("ModelShape",),
    "state": ("State", "Violation", "snapshot", "violations"),
    "script": ("Operation", "parse_script"),
    "recording": ("Frame", "record"),
    "kv_cache": ("ContiguousKVCache", "PagedKVCache"),
    "sentinel": ("Mismatch", "SentinelWriter"),
    "attention": ("attention_oracle", "online_softmax_trace", "paged_decode"),
    "checkpoint": ("GGUF", "ModelNotFound", "find_model"),
    "tokenizer": ("Tokenizer",),
    "decoder": ("Decoder",),
    "sequences": ("ContiguousSequences", "PagedSequences"),
    "generation": ("StreamedToken", "generate"),
    "shared_prefix": ("prefill_in_turn",),
    "parallel_sampling": ("sample_continuations",),
    "beam_search": ("BeamSearch",),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str):
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kvlab' has no attribute {name!r}")
    value = getattr(import_module(f"kvlab.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
