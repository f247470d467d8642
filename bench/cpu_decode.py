"""How much of a plain read's speed paged decode on the CPU reaches, and what the other ways reach.

Run: python bench/cpu_decode.py [--shape 16x1024 16x4096 1x65536] [--dtype float32 bfloat16 float16]
32 query heads on 8 KV heads, head_dim 128, blocks of 16. In each round every contender runs once, beside a
plain read of the same K and V through the same block table; a share is that read's time over the contender's,
and the table gives its median over the rounds (with the quartiles). The sum of the contiguous bytes by torch
shows how fast this memory is at all. Compilation happens before the first round and is shown apart.
On a machine that others use, --clock cpu counts the processor time of all threads instead of the time that
passed; then only our own two rows compare, since torch's threads also count while they wait.
"""

from __future__ import annotations

import argparse
import json
import platform
from statistics import median, quantiles
from time import perf_counter, process_time

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

from kvlab import paged_decode
from kvlab.cpu_read import read_blocks

HQ, HKV, DIM, BLOCK = 32, 8, 128, 16
CLOCKS = {"wall": perf_counter, "cpu": process_time}
READ = "read through the block table"
SETTLE = 0.02  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--shape", nargs="+", default=["16x1024", "16x4096", "1x65536"], help="sequences x length"
    )
    parser.add_argument("--dtype", nargs="+", default=["float32", "bfloat16", "float16"])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if not args.json:
        print(
            f"{platform.processor() or platform.machine()}, {args.threads} threads, torch {torch.__version__}"
        )
    for shape in args.shape:
        for dtype in args.dtype:
            num_seqs, length = map(int, shape.split("x"))
            result = measure(num_seqs, length, getattr(torch, dtype), args.rounds, CLOCKS[args.clock])
            print(
                json.dumps({"shape": shape, "dtype": dtype, **result})
                if args.json
                else show(shape, dtype, result),
                flush=True,
            )


def measure(num_seqs: int, length: int, dtype: torch.dtype, rounds: int, clock=perf_counter) -> dict:
    contenders, num_bytes = prepare(num_seqs, length, dtype)
    begin = perf_counter()
    contenders["ours"]()
    first_call = perf_counter() - begin
    check(contenders)
    times = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            settle()
            begin = clock()
            run()
            times[name].append(clock() - begin)
    shares = {
        name: [read / own for read, own in zip(times[READ], times[name], strict=True)]
        for name in contenders
        if name != READ
    }
    return {
        "first_call_s": first_call,
        "gb": num_bytes / 1e9,
        "gb_per_s": {name: num_bytes / 1e9 / median(values) for name, values in times.items()},
        "read_spread": max(times[READ]) / min(times[READ]),
        "share": {name: [median(values), *quantiles(values, n=4)[::2]] for name, values in shares.items()},
    }


def settle() -> None:
    """Until torch's threads, which spin for some milliseconds after their work, leave the cores to the next.

    Not asleep: the first milliseconds after that are slow, and decode steps follow each other closely.
    """
    end = perf_counter() + SETTLE
    while perf_counter() < end:
        pass


def prepare(num_seqs: int, length: int, dtype: torch.dtype):
    """The contenders as functions without arguments, and the bytes of K and V that each has to move."""
    generator = torch.Generator().manual_seed(0)
    num_blocks = num_seqs * -(-length // BLOCK)
    k, v = (torch.randn(num_blocks, BLOCK, HKV, DIM, generator=generator).to(dtype) for _ in "kv")
    tables = torch.randperm(num_blocks, generator=generator).to(torch.int32).view(num_seqs, -1)
    lens = torch.full((num_seqs,), length, dtype=torch.int32)
    q = torch.randn(num_seqs, HQ, DIM, generator=generator).to(dtype)
    # [S, Hkv, T, D]: what a cache without blocks would hold.
    own_k, own_v = (cache[tables].flatten(1, 2)[:, :length].transpose(1, 2).contiguous() for cache in (k, v))
    folded = q.view(num_seqs, HKV, HQ // HKV, DIM)

    def gather():
        keys, values = (cache[tables].flatten(1, 2)[:, :length].transpose(1, 2) for cache in (k, v))
        return sdpa(folded, keys, values).reshape(q.shape)

    contenders = {
        READ: lambda: read_blocks(k, v, tables, lens),
        "ours": lambda: paged_decode(q, k, v, tables, lens, backend="cpu"),
        "contiguous SDPA, group folded": lambda: sdpa(folded, own_k, own_v).reshape(q.shape),
        "gather, then SDPA": gather,
        "sum of contiguous bytes": lambda: (own_k.view(torch.int64).sum(), own_v.view(torch.int64).sum()),
    }
    return contenders, 2 * num_seqs * length * HKV * DIM * k.element_size()


def check(contenders: dict) -> None:
    """All must compute the same before their times mean anything."""
    ours = contenders["ours"]().double()
    for name in ("contiguous SDPA, group folded", "gather, then SDPA"):
        error = (contenders[name]().double() - ours).abs().max().item()
        assert error < 2e-2, f"{name} differs from ours by {error}"


def show(shape: str, dtype: str, result: dict) -> str:
    lines = [
        f"\n{shape} {dtype}: {result['gb']:.2f} GB a call; our first call took {result['first_call_s']:.1f} s"
    ]
    speeds = result["gb_per_s"]
    lines.append(f"  {READ:<32}{speeds[READ]:>7.2f} GB/s   slowest / fastest {result['read_spread']:.2f}")
    for name, (middle, low, high) in result["share"].items():
        lines.append(f"  {name:<32}{speeds[name]:>7.2f} GB/s   share {middle:.2f} ({low:.2f} to {high:.2f})")
    ours = speeds["ours"]
    ratios = [f"{ours / speeds[name]:.1f} x {name}" for name in speeds if "SDPA" in name]
    return "\n".join([*lines, f"  ours is {' and '.join(ratios)}"])


if __name__ == "__main__":
    main()
