"""`python -m kvlab bench`: decode attention timed against this machine's limits, contenders side by side."""

import argparse
import json
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sweep", nargs="+", metavar="NAME", help="only these sweeps (default: all)")
    parser.add_argument("--seqs", type=int, metavar="S", help="sequences (default: 4; on a GPU 64)")
    parser.add_argument("--context", type=int, metavar="T", help="tokens each (default: 2048; on a GPU 8192)")
    parser.add_argument("--dtype", help="of K and V (default: float32; on a GPU bfloat16)")
    parser.add_argument("--rounds", type=int, default=10, help="rounds a point (default: 10)")
    parser.add_argument("--budget", type=float, default=240, help="seconds for everything (default: 240)")
    parser.add_argument("--threads", type=int, help="of torch and of the CPU path (default: torch's choice)")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: processor time, for a machine that others use; compares fairly with --threads 1 only",
    )
    parser.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
    parser.add_argument("--no-flex", action="store_true", help="without FlexAttention, which compiles first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", metavar="FILE", help="write all figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Print a row as soon as it is measured; 0 when done, 2 when an argument cannot be used."""
    import torch

    from kvlab.timing_report import heading, left_out_text, row_text
    from kvlab.timing_sweeps import document, run_points

    if args.threads:
        torch.set_num_threads(args.threads)
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        points = chosen_points(args, device)
        if args.out:
            Path(args.out).touch()  # so that a wrong path is told before the minutes of measuring
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    rows: list[dict] = []
    about = {"device": device, "clock": args.clock, "seed": args.seed}
    made = document([], **about)  # now, since the load must not be that of the measuring itself
    print(heading(made), flush=True)
    options = {"rounds": args.rounds, "budget": args.budget, "flex": not args.no_flex, **about}
    for number, row in run_points(points, **options):
        rows.append(row)
        print(f"{row_text(row)}\n[{number + 1} of {len(points)} points]", flush=True)
    skipped = [f"{point.sweep} = {point.value}" for point in points[len(rows) :]]
    if skipped:
        print(f"\nThe budget of {args.budget:g} s is used up; not measured: {', '.join(skipped)}.")
    print(f"\n{left_out_text(rows)}")
    if args.out:
        Path(args.out).write_text(_as_text(made | {"not_measured": skipped}, rows), encoding="utf-8")
    return 0


def chosen_points(args: argparse.Namespace, device: str) -> list:
    """The sweeps' points that the arguments ask for; ValueError with a sentence."""
    from kvlab.timing_sweeps import SWEEPS, TILE, sweep_points
    from kvlab.traffic import DecodeShape

    gpu = device.startswith("cuda")
    if not gpu and TILE in (args.sweep or ()):
        raise ValueError(
            f"the sweep {TILE!r} times the Triton kernel's tiles, and that needs a GPU: leave it out."
        )
    shape = DecodeShape(
        64 if args.seqs is None and gpu else 4 if args.seqs is None else args.seqs,
        8192 if args.context is None and gpu else 2048 if args.context is None else args.context,
        dtype=args.dtype or ("bfloat16" if gpu else "float32"),
    ).check()
    if args.rounds < 1:
        raise ValueError(f"--rounds must be at least 1, not {args.rounds}.")
    dtypes = ("bfloat16", "float16", "float8_e4m3fn") if gpu else ("float32", "bfloat16", "float16")
    return sweep_points(shape, dtypes, args.sweep or (SWEEPS + (TILE,) * gpu))


def _as_text(head: dict, rows: list[dict]) -> str:
    """The document as JSON, a row a line."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    return json.dumps(head | {"rows": []}, indent=1).replace('"rows": []', f'"rows": [\n{lines}\n]') + "\n"
