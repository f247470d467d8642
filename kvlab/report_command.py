"""`python -m kvlab report LOG`: does an engine's start-up log or metrics page agree with the formulas?"""

import argparse
import json
import sys
from pathlib import Path

from kvlab.engine_report import AGREES, DIFFERS, NOTE, UNCHECKED, Report, engine_report
from kvlab.engine_source import read_source
from kvlab.model_argument import (
    add_model_arguments,
    chosen_model,
    count_or_none,
    kv_dtype_or_none,
    sentence,
)
from kvlab.units import parse_bytes

_MARKS = {AGREES: "ok", DIFFERS: "XX", UNCHECKED: "--", NOTE: ".."}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="a log file, a saved metrics page, or its http(s) URL")
    add_model_arguments(parser)
    parser.add_argument("--available", metavar="SIZE", help="bytes for the KV cache, when the text has none")
    parser.add_argument(
        "--weights", metavar="SIZE", help="bytes of the weights, to check the checkpoint size"
    )
    parser.add_argument("--out", metavar="FILE", help="write the findings as JSON, too")


def run(args: argparse.Namespace) -> int:
    """Print a finding a line; 0 when nothing differs, 1 when something does, 2 when it cannot be read."""
    try:
        report = build(args)
        if args.out:
            Path(args.out).write_text(json.dumps(report.as_dict(), indent=2) + "\n", encoding="utf-8")
    except (ValueError, KeyError, OSError) as error:
        print(sentence(error), file=sys.stderr)
        return 2
    print(as_text(report))
    return 1 if report.verdict == DIFFERS else 0


def build(args: argparse.Namespace) -> Report:
    """The findings that the arguments ask for. Raises ValueError, KeyError or OSError with a sentence."""
    model = chosen_model(args)
    if args.available:
        parse_bytes(args.available)
    return engine_report(
        read_source(args.log),
        model.shape,
        block_size=count_or_none(args.block_size, "--block-size"),
        kv_dtype=kv_dtype_or_none(args.kv_dtype),
        tensor_parallel=count_or_none(args.tensor_parallel, "--tensor-parallel"),
        in_flight=count_or_none(args.in_flight, "--in-flight"),
        available=args.available,
        weights=parse_bytes(args.weights) if args.weights else model.weight_bytes,
    )


def as_text(report: Report) -> str:
    """The findings for a terminal: the engine's line, then the verdict and why."""
    told = ", ".join(f"{name} {value}" for name, value in report.settings.items() if value is not None)
    lines = [f"Checked with: {told}", ""]
    for finding in report.findings:
        where = f"line {finding.line}" if finding.line else "missing"
        lines.append(f"[{_MARKS[finding.verdict]}] {where}: {finding.quote}")
        lines.append(f"     {finding.verdict}: {finding.says}")
    return "\n".join([*lines, "", f"Verdict: {report.verdict}."])
