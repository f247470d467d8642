"""`python -m kvlab size`: how many blocks, tokens and requests a budget holds, as a table and as JSON."""

import argparse
import json
import sys
from pathlib import Path

from kvlab.budget import MemoryAccount, available_bytes, memory_account
from kvlab.model_argument import (
    add_model_arguments,
    chosen_model,
    count_or_none,
    kv_dtype_or_none,
    sentence,
)
from kvlab.size_report import as_text, size_report
from kvlab.units import bytes_behind, has_decimals, parse_bytes, parse_share


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--available", metavar="SIZE", help="bytes for the KV cache, as a log says: 5.68GiB")
    parser.add_argument("--memory", metavar="SIZE", help="the GPU's memory: 24GiB (not 24G)")
    parser.add_argument("--utilization", metavar="SHARE", help="share of the memory to use (default: 0.9)")
    parser.add_argument("--weights", metavar="SIZE", help="bytes of the weights on one GPU")
    parser.add_argument("--rest", metavar="SIZE", help="bytes for activations and the engine (default: 0)")
    parser.add_argument("--max-len", metavar="TOKENS", help="length of a request (default: the model's)")
    parser.add_argument("--out", metavar="FILE", help="write the figures as JSON, too")


def run(args: argparse.Namespace) -> int:
    """Print the table; 0 when done, 2 when an argument or a file cannot be used."""
    try:
        report = build(args)
        if args.out:
            Path(args.out).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    except (ValueError, KeyError, OSError) as error:
        print(sentence(error), file=sys.stderr)
        return 2
    print(as_text(report))
    return 0


def build(args: argparse.Namespace) -> dict:
    """The figures that the arguments ask for. Raises ValueError, KeyError or OSError with a sentence."""
    model = chosen_model(args)
    ranks = count_or_none(args.tensor_parallel, "--tensor-parallel") or 1
    max_len = count_or_none(args.max_len, "--max-len") or model.shape.max_model_len
    if max_len is None:
        raise ValueError(f"The configuration of {model.shape.name} names no length: give --max-len.")
    weights = (
        parse_bytes(args.weights) if args.weights else model.weight_bytes and model.weight_bytes // ranks
    )
    available, rounded, account = budget(args, weights)
    return size_report(
        model.shape.per_rank(ranks),
        available,
        block_size=count_or_none(args.block_size, "--block-size") or 16,
        max_len=max_len,
        kv_dtype=kv_dtype_or_none(args.kv_dtype),
        in_flight=count_or_none(args.in_flight, "--in-flight") or 2048,
        rounded=rounded,
        account=account,
    )


def budget(
    args: argparse.Namespace, weights: int | None
) -> tuple[int, tuple[int, int] | None, MemoryAccount | None]:
    """(bytes for KV, the range they may stand for, the account of the card's memory when it is known)."""
    share = parse_share(args.utilization) if args.utilization else parse_share("0.9")
    total = parse_bytes(args.memory) if args.memory else None
    if args.available:
        available = parse_bytes(args.available)
        rounded = bytes_behind(args.available) if has_decimals(args.available) else None
    elif total is None:
        raise ValueError("Give the budget: --available SIZE, or --memory SIZE with --weights SIZE.")
    elif weights is None:
        raise ValueError(
            "--memory needs --weights SIZE (or --model DIR, which tells them): what is left is for KV."
        )
    else:
        rest = parse_bytes(args.rest) if args.rest else 0
        available, rounded = available_bytes(total, share, weights, rest), None
    account = memory_account(total, share, weights, available) if total and weights is not None else None
    return available, rounded, account
