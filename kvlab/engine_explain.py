"""Why an engine's figure may differ from the formula: which other setting would make it agree."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from kvlab.engine_findings import Question
from kvlab.layer_kinds import Layer

_MOST = 3


def explain(question: Question, agrees: Callable[[Question], bool]) -> str:
    """A sentence that names the settings with which the figure would agree, or says that none was found."""
    found = []
    for words, other in _variants(question):
        try:
            if agrees(other):
                found.append(words)
        except ValueError:  # a variant that this model cannot have, such as heads that do not divide
            continue
        if len(found) == _MOST:
            break
    if found:
        return f" It would agree {', or '.join(found)}."
    return (
        " No single other setting explains it: is this the configuration of the model in the log? "
        "A fixed number of blocks or another engine's memory on the GPU would also show like this."
    )


def _variants(question: Question) -> Iterator[tuple[str, Question]]:
    own = question.model.number_bytes(question.kv_dtype)
    for dtype, size in (("fp8", 1), ("float16", 2), ("float32", 4)):
        if size != own:
            yield (
                f"with KV in {size} byte{'s' * (size > 1)} a number ({dtype})",
                replace(question, kv_dtype=dtype),
            )
    for ranks in (1, 2, 4, 8, 16):
        if ranks != question.tensor_parallel:
            yield f"on {ranks} GPU{'s' * (ranks > 1)}", replace(question, tensor_parallel=ranks)
    for size in (1, 8, 16, 32, 64, 128):
        if size != question.block_size:
            yield f"with blocks of {size}", replace(question, block_size=size)
    if question.model.num_query_heads:
        heads = question.model.num_query_heads
        yield "if each query head had its own KV head", _with_layers(question, num_kv_heads=heads)
    if any(not layer.is_attention for layer in question.model.layers):
        states = 2 if question.state_blocks == 1 else 1
        words = f"with {states} state{'s' * (states > 1)} of each linear layer a request (prefix caching)"
        yield words, replace(question, state_blocks=states)
    if any(layer.kind != "full" and layer.is_attention for layer in question.model.layers):
        yield "if the windowed layers kept every token", _with_layers(question, kind="full", window=None)


def _with_layers(question: Question, **changes) -> Question:
    def changed(layer: Layer) -> Layer:
        return replace(layer, **changes) if layer.is_attention else layer

    layers = tuple(changed(layer) for layer in question.model.layers)
    return replace(question, model=replace(question.model, layers=layers))
