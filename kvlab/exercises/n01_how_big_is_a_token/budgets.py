"""01.budgets: which byte counts give the block counts of several logs at once."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.trial import Trial

STUB = '''\
def budgets(logs):
    """The budgets that give every log's number of blocks, when all had the same budget.

    Args:
        logs: list of (num_blocks, block_bytes), one pair a log, at least one.

    Returns:
        (low, high): low is the smallest budget that fits, high the first that is too large.

    Raises:
        ValueError: no budget fits all of them.

    Worked line: [(3, 10), (6, 5)] -> (30, 35): 30 to 39 bytes hold 3 blocks of 10, and 30 to 34
    hold 6 blocks of 5.
    """
    ...  # about 5 lines
'''

SOLUTION = '''\
def budgets(logs):
    """(low, high) of the budgets, low <= budget < high, that give every log's number of blocks."""
    low = max(blocks * size for blocks, size in logs)
    high = min((blocks + 1) * size for blocks, size in logs)
    if low >= high:
        raise ValueError(f"no budget fits all of {logs}")
    return low, high
'''

HINTS = (
    "One log alone: `num_blocks` blocks fit, and one more did not. Between which two byte counts does the "
    "budget lie?",
    "A budget that fits all logs is above every lower end and below every upper end: the largest of the "
    "lows, "
    "the smallest of the highs. They can pass each other; then nothing fits.",
)

_FP16, _FP8 = (6_652, 917_504), (13_305, 458_752)
_CASES = [[(3, 10), (6, 5)], [(3, 10)], [_FP16], [_FP8], [_FP16, _FP8], [_FP8, _FP16], [(0, 7), (1, 5)]]
_NONE = [[(3, 10), (8, 5)], [(3, 10), (5, 5)], [_FP16, (13_306, 458_752)]]


def _ranges(logs: list[tuple[int, int]]) -> str:
    return " and ".join(f"{blocks * size:,} to {(blocks + 1) * size - 1:,}" for blocks, size in logs)


def check(trial: Trial) -> str:
    for logs in _CASES:
        low = max(blocks * size for blocks, size in logs)
        high = min((blocks + 1) * size for blocks, size in logs)
        trial.gives(
            list(logs),
            expected=(low, high),
            given=f"logs {logs}",
            because=f"they allow {_ranges(logs)} bytes, and {high:,} is the first that is too large for all",
        )
    for logs in _NONE:
        trial.raises(
            ValueError,
            list(logs),
            given=f"logs {logs}",
            because=f"they allow {_ranges(logs)} bytes, which do not overlap",
        )
    return "Both logs fit 6,103,695,360 to 6,104,154,111 bytes: a range of half a block."


exercise = Exercise(
    id="01.budgets",
    title="Which budgets fit both logs",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "what any log allows",
            SOLUTION.replace("low = max", "low = min").replace("high = min", "high = max"),
            says="got (30, 40)",
        ),
        WrongAnswer(
            "only the first log",
            edited(SOLUTION, "    low = max", "    logs = logs[:1]\n    low = max"),
            says="they allow 30 to 39 and 30 to 34 bytes",
        ),
        WrongAnswer(
            "last that fits for first that does not",
            edited(SOLUTION, "return low, high", "return low, high - 1"),
            says="got (30, 34)",
        ),
        WrongAnswer(
            "the bytes used as the budget",
            edited(SOLUTION, "return low, high", "return low, low"),
            says="got (30, 30)",
        ),
        WrongAnswer(
            "never says that nothing fits",
            edited(SOLUTION, "if low >= high:", "if False:"),
            says="which do not overlap; got (40, 40)",
        ),
    ],
)
