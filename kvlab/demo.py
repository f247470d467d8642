"""`python -m kvlab demo`: two prompts answered from one paged cache, checked against no paging at all."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from kvlab.block_manager import BlockManager
from kvlab.block_pool import OutOfBlocks
from kvlab.checkpoint import GGUFError, ModelNotFound, require_model
from kvlab.demo_screen import screen
from kvlab.state import snapshot

DEFAULT_PROMPTS = ("Write one sentence about the sea.", "Why is the sky blue?")
TOLERANCE = 1e-3  # float32 rounding stays far below it; a wrong slot lands far above


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prompt", action="append", metavar="TEXT", help="what to ask; give it once for each request"
    )
    parser.add_argument("--tokens", type=int, default=40, help="at most so many a request (default 40)")
    parser.add_argument("--block-size", type=int, default=16, help="tokens a block (default 16)")
    parser.add_argument("--num-blocks", type=int, help="blocks in the pool (default: enough, and a few more)")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (default 0)")
    parser.add_argument("--seed", type=int, default=0, help="for a temperature over 0 (default 0)")


def run(args: argparse.Namespace) -> int:
    """Returns 0, or 1 when there is no model, the pool is too small, or the two runs disagree."""
    try:
        return _run(args)
    except OutOfBlocks as error:
        print(f"The pool is full: {error}. Or give more blocks with --num-blocks.", file=sys.stderr)
    except (ModelNotFound, GGUFError, ValueError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
    return 1


def _run(args: argparse.Namespace) -> int:
    path = require_model()
    import torch

    from kvlab.decoder import Decoder

    torch.set_num_threads(min(4, torch.get_num_threads()))
    print(f"Loading {path.name} ...", file=sys.stderr)
    decoder = Decoder.from_gguf(path)
    texts = dict(zip(_names(), args.prompt or DEFAULT_PROMPTS, strict=False))
    prompts = {name: decoder.tokenizer.chat(text) for name, text in texts.items()}
    manager = BlockManager(args.num_blocks or _enough(prompts, args.tokens, args.block_size), args.block_size)
    totals = Totals()
    with screen(texts, sys.stdout) as show:
        for tokens in compare(decoder, manager, prompts, args, totals):
            show(tokens, snapshot(manager, manager.request_ids()))
    print(totals.told())
    return 0 if totals.difference < TOLERANCE else 1


@dataclass
class Totals:
    """What the end of the demo says."""

    tokens: int = 0
    steps: int = 0
    difference: float = 0.0
    paged_seconds: float = 0.0
    contiguous_seconds: float = 0.0
    same_choice: int = 0

    def told(self) -> str:
        same = "the same" if self.same_choice == self.tokens else "NOT always the same"
        verdict = "float32 rounding" if self.difference < TOLERANCE else "too much: the paged run is wrong"
        paged, contiguous = self.tokens / self.paged_seconds, self.tokens / self.contiguous_seconds
        return (
            f"{self.tokens} tokens in {self.steps} steps, prompts included: "
            f"paged {paged:.1f} tokens/s, contiguous {contiguous:.1f} tokens/s.\n"
            f"Largest logit difference to the contiguous run: {self.difference:.1e} ({verdict}); "
            f"the likeliest token is {same} at every step."
        )


def compare(decoder, manager, prompts: Mapping[str, Sequence[int]], args, totals: Totals) -> Iterator[list]:
    """Each step's StreamedTokens from the paged run; the contiguous run is fed the same tokens beside it."""
    from kvlab.generation import Generator
    from kvlab.sequences import ContiguousSequences, PagedSequences

    contiguous = ContiguousSequences(decoder.config)
    generator = Generator(
        decoder,
        PagedSequences(decoder.config, manager),
        max_new_tokens=args.tokens,
        temperature=args.temperature,
        seed=args.seed,
        release_finished=False,
    )
    for request_id, ids in prompts.items():
        generator.add(request_id, ids)
    feed = dict(prompts)
    while feed:
        start = perf_counter()
        tokens = generator.step()
        middle = perf_counter()
        expected = decoder.step(contiguous, feed)
        totals.paged_seconds += middle - start
        totals.contiguous_seconds += perf_counter() - middle
        totals.steps += 1
        for token in tokens:
            logits = expected[token.request_id]  # [vocab]
            totals.tokens += 1
            totals.difference = max(totals.difference, float((token.logits - logits).abs().max()))
            totals.same_choice += int(token.logits.argmax() == logits.argmax())
        yield tokens
        for token in tokens:
            if token.finished:
                generator.sequences.release(token.request_id)
                contiguous.release(token.request_id)
        feed = {token.request_id: [token.token_id] for token in tokens if not token.finished}


def _names() -> Iterator[str]:
    """A, B, ... Z, R27, R28, ..."""
    yield from "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    number = 27
    while True:
        yield f"R{number}"
        number += 1


def _enough(prompts: Mapping[str, Sequence[int]], tokens: int, block_size: int) -> int:
    """Blocks for all requests at their longest, and four that stay free, to show."""
    if block_size < 1:
        return 1
    return sum(-(-(len(ids) + tokens) // block_size) for ids in prompts.values()) + 4
