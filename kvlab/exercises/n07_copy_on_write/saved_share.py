"""07.saved_share: the share of blocks that sharing a prompt saves."""

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.trial import Trial, show

STUB = '''\
def saved_share(prompt, output, samples, block_size):
    """Share of the blocks that `samples` continuations of one prompt save by sharing it.

    Args:
        prompt: tokens of the prompt.
        output: tokens of EACH continuation (all of equal length), at least 1.
        samples: how many continuations.
        block_size: B, slots a block.

    Returns:
        float: 1 - blocks with sharing / blocks without. Only full blocks are shared.

    Worked line: prompt 19, output 58, samples 2, B 16
        -> 0.1: 10 blocks without sharing, 1 + 2 * 4 = 9 with.
    """
    ...  # about 4 lines
'''

SOLUTION = '''\
def saved_share(prompt, output, samples, block_size):
    """1 - blocks with sharing / blocks without, for continuations of equal length."""
    full = prompt // block_size
    each = -(-(prompt + output) // block_size)
    return 1 - (full + samples * (each - full)) / (samples * each)
'''

HINTS = (
    "Without sharing, each continuation holds ceil((prompt + output) / B) blocks. Of these, prompt // B are "
    "full "
    "blocks of the prompt.",
    "With sharing those exist once, and everything else once for each continuation: full + samples * (each "
    "- full).",
)

_CASES = [(19, 58, 2, 16), (19, 58, 6, 16), (15, 58, 4, 16), (160, 340, 4, 16), (32, 1, 3, 16), (7, 3, 1, 4)]


def check(trial: Trial) -> str:
    for prompt, output, samples, block_size in _CASES:
        full, each = prompt // block_size, -(-(prompt + output) // block_size)
        without, shared = samples * each, full + samples * (each - full)
        given = f"prompt {prompt}, output {output}, samples {samples}, B = {block_size}"
        summed = f"{full} + {samples} * {each - full} = {shared}"
        because = f"{without} blocks are held without sharing and {summed} with"
        got = trial.call(prompt, output, samples, block_size, given=given)
        due = 1 - shared / without
        if not isinstance(got, int | float) or isinstance(got, bool) or abs(got - due) > 1e-9:
            forgot = " (is the `return` missing?)" if got is None else ""
            raise Refused(f"{given}: expected {due:.4f}, because {because}; got {show(got)}{forgot}.")
    return "Short prompts save nothing: they never fill a block."


exercise = Exercise(
    id="07.saved_share",
    title="What sharing saves",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "shares the partial block, too",
            edited(SOLUTION, "full = prompt // block_size", "full = -(-prompt // block_size)"),
            says="expected 0.1000, because 10 blocks are held without sharing and 1 + 2 * 4 = 9 with; got "
            "0.19",
        ),
        WrongAnswer(
            "counts tokens",
            edited(SOLUTION, "full = prompt // block_size", "full = prompt").replace(
                "-(-(prompt + output) // block_size)", "prompt + output"
            ),
            says="prompt 19, output 58, samples 2, B = 16: expected 0.1000",
        ),
        WrongAnswer(
            "what is left, not what is saved", edited(SOLUTION, "return 1 - ", "return "), says="got 0.9"
        ),
        WrongAnswer(
            "the prompt is held by nobody",
            edited(SOLUTION, "(full + samples * (each - full))", "samples * (each - full)"),
            says="with; got 0.19",
        ),
        WrongAnswer(
            "forgets that the prompt fills blocks, too",
            edited(SOLUTION, "(prompt + output)", "output"),
            says="10 blocks are held without sharing",
        ),
        WrongAnswer(
            "percent", edited(SOLUTION, "return 1 - ", "return 100 - 100 * "), says="expected 0.1000"
        ),
    ],
)
