"""11.request_blocks: the most blocks that one request holds over all groups of layers."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def request_blocks(length, block_size, windows, in_flight):
    """The most blocks that one request holds at once, summed over the groups of layers.

    A group without a window holds every token: ceil(length / B) blocks. A group with window W holds at
    most W - 1 old tokens and the `in_flight` tokens of one step, never more than `length`; and one
    block more, because a window need not begin where a block begins.

    Args:
        length: tokens of the request, at least 1.
        block_size: B, the same in all groups.
        windows: one entry a group: None, or W.
        in_flight: tokens that one step may add.

    Worked line: 20 tokens, B = 4, windows [None, 8], 1 in flight -> 8: 5 and ceil(8 / 4) + 1 = 3.
    """
    ...  # about 8 lines
'''

SOLUTION = '''\
def request_blocks(length, block_size, windows, in_flight):
    """The most blocks that one request holds at once, over all groups."""
    blocks = 0
    for window in windows:
        if window is None:
            blocks += -(-length // block_size)
        else:
            kept = min(window - 1 + in_flight, length)
            blocks += -(-kept // block_size) + 1
    return blocks
'''

HINTS = (
    "Go through the groups and add up. For a group without a window it is the line from notebook 00.",
    "With a window: `min(window - 1 + in_flight, length)` tokens, rounded up to blocks, plus one. The "
    "tokens of "
    "a step count, since a prompt is written in large steps.",
)

_CASES = [
    (20, 4, (None, 8), 1),
    (20, 4, (None,), 1),
    (20, 4, (8,), 1),
    (21, 4, (None, 8, 8), 9),
    (8_192, 16, (None, 1_024, 1_024, 1_024, 1_024, 1_024), 2_048),
    (100, 16, (None, 1_024), 2_048),
]


def _kept(length: int, window: int, in_flight: int) -> int:
    return min(window - 1 + in_flight, length)


def check(trial: Trial) -> str:
    for length, size, windows, in_flight in _CASES:
        full = windows.count(None) * -(-length // size)
        cut = [_kept(length, w, in_flight) for w in windows if w]
        whole = [w - 1 + in_flight for w in windows if w]
        own = [
            -(-length // size) if w is None else -(-_kept(length, w, in_flight) // size) + 1 for w in windows
        ]
        gives(
            trial,
            length,
            size,
            list(windows),
            in_flight,
            expected=sum(own),
            given=f"{length} tokens, B = {size}, windows {list(windows)}, {in_flight} in flight",
            because=f"the groups hold {' + '.join(map(str, own))} blocks",
            mistakes={
                "every group was counted as if it kept the whole text": len(windows) * -(-length // size),
                "a window may begin inside a block: one more for it": full + sum(-(-n // size) for n in cut),
                "the tokens of the step are kept, too": full
                + sum(-(-min(w - 1, length) // size) + 1 for w in windows if w),
                "no group keeps more tokens than there are": full + sum(-(-n // size) + 1 for n in whole),
                "the newest token is one of the W": full
                + sum(-(-min(w + in_flight, length) // size) + 1 for w in windows if w),
            },
        )
    return "One full group and five with windows of 1,024: 512 + 5 * 193 = 1,477 blocks for 8,192 tokens."


exercise = Exercise(
    id="11.request_blocks",
    title="Blocks over all groups",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "no window at all",
            edited(SOLUTION, "if window is None:", "if True:"),
            says="as if it kept the whole text",
        ),
        WrongAnswer(
            "no extra block",
            edited(SOLUTION, "// block_size) + 1", "// block_size)"),
            says="a window may begin inside a block",
        ),
        WrongAnswer(
            "nothing in flight",
            edited(SOLUTION, "window - 1 + in_flight", "window - 1"),
            says="the tokens of the step are kept, too",
        ),
        WrongAnswer(
            "longer than the text",
            edited(SOLUTION, "min(window - 1 + in_flight, length)", "window - 1 + in_flight"),
            says="no group keeps more tokens than there are",
        ),
        WrongAnswer(
            "a window of W + 1",
            edited(SOLUTION, "window - 1 + in_flight", "window + in_flight"),
            says="the newest token is one of the W",
        ),
    ],
)
