"""`python -m kvlab COMMAND`: a command is a module with add_arguments(parser) and run(args)."""

import argparse
import sys
from difflib import get_close_matches
from importlib import import_module

from kvlab import __version__

# name -> (module, what it does); a new command is a new line here and its module
COMMANDS = {
    "doctor": ("kvlab.doctor", "what is installed here, what is missing, and what to do about it"),
    "demo": ("kvlab.demo", "two prompts share one paged cache while a real model answers them"),
    "replay": ("kvlab.replay_command", "run recorded engine traces on our manager, line by line"),
    "size": ("kvlab.size_command", "how many blocks, tokens and requests a memory budget holds"),
    "report": ("kvlab.report_command", "check an engine's start-up log or metrics page against the formulas"),
    "bench": ("kvlab.bench_command", "time decode attention against this machine's limits, side by side"),
    "compile-report": (
        "kvlab.compile_report",
        "the Triton kernel's machine code for GPUs that need not be here",
    ),
}


def main(argv: list[str] | None = None) -> int:
    """Run the command that argv names; returns the exit code (2: no such command)."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv[0] == "--version":
        print(f"kvlab {__version__}")
        return 0
    name, rest = argv[0], argv[1:]
    if name not in COMMANDS:
        print(unknown(name), file=sys.stderr)
        return 2
    module_name, text = COMMANDS[name]
    module = import_module(module_name)
    parser = argparse.ArgumentParser(
        prog=f"python -m kvlab {name}", description=f"{text[0].upper()}{text[1:]}."
    )
    module.add_arguments(parser)
    try:
        return module.run(parser.parse_args(rest)) or 0
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: python -m kvlab COMMAND [options]",
            "",
            *lines,
            "",
            "python -m kvlab COMMAND --help shows its options; the notebooks open with `make lab`.",
        ]
    )


def unknown(name: str) -> str:
    close = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(COMMANDS)}."
    return f"kvlab has no command {name!r}: {hint}"


if __name__ == "__main__":
    sys.exit(main())
