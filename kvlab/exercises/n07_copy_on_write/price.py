"""07.price: what n continuations of one prompt hold, copied and shared."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.trial import Trial

STUB = '''\
def price(prompt, samples, block_size, token_bytes):
    """Bytes that `samples` continuations of one prompt hold, each with one token of its own.

    Args:
        prompt: tokens of the prompt.
        samples: how many continuations, at least 1.
        block_size: B, slots a block. Whole blocks are held, half-empty ones too.
        token_bytes: bytes of K and V of one token, over all layers.

    Returns:
        (copied, shared): bytes when each continuation has the whole prompt to itself, and bytes
        when the prompt's full blocks are held once for all.

    Worked line: prompt 10, samples 4, B 4, 100 bytes -> (4800, 2400): 12 blocks against 6.
    """
    ...  # about 4 lines
'''

SOLUTION = '''\
def price(prompt, samples, block_size, token_bytes):
    """Bytes held by `samples` continuations of one token each: copied, and shared."""
    copied = samples * -(-(prompt + 1) // block_size)
    shared = prompt // block_size + samples
    block_bytes = block_size * token_bytes
    return copied * block_bytes, shared * block_bytes
'''

HINTS = (
    "Count blocks first, bytes last. A continuation holds prompt + 1 tokens, so ceil((prompt + 1) / B) "
    "blocks "
    "when it shares nothing.",
    "`prompt // block_size` blocks are full: nobody will write into them again, so all may hold them. "
    "Everything after that is one block for each continuation.",
)

_CASES = [(10, 4, 4, 100), (8, 4, 4, 100), (3, 2, 4, 100), (10, 1, 4, 100), (2_000, 4, 16, 57_344)]
_CASES += [(2_001, 4, 16, 57_344), (15, 6, 16, 131_072)]


def check(trial: Trial) -> str:
    for prompt, samples, block_size, token_bytes in _CASES:
        full, each = prompt // block_size, -(-(prompt + 1) // block_size)
        block_bytes = block_size * token_bytes
        because = (
            f"copied, {samples} times {each} blocks hold {prompt + 1} tokens; shared, {full} full "
            f"block{'s' * (full != 1)} of the prompt exist once and each continuation writes into a block of "
            f"its own, {full} + {samples}; a block is {block_bytes} bytes"
        )
        trial.gives(
            prompt,
            samples,
            block_size,
            token_bytes,
            expected=(samples * each * block_bytes, (full + samples) * block_bytes),
            given=f"prompt {prompt}, samples {samples}, B = {block_size}, {token_bytes} bytes a token",
            because=because,
        )
    return "The prompt costs once, whatever the number of continuations."


exercise = Exercise(
    id="07.price",
    title="A copy against a share, in bytes",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "counts tokens, not blocks",
            edited(SOLUTION, "-(-(prompt + 1) // block_size)", "(prompt + 1) / block_size"),
            says="got (4400.0, 2400)",
        ),
        WrongAnswer(
            "the partial block stays shared",
            edited(SOLUTION, "prompt // block_size + samples", "-(-prompt // block_size)"),
            says="got (4800, 1200)",
        ),
        WrongAnswer(
            "the partial block copied and kept, too",
            edited(SOLUTION, "prompt // block_size + samples", "-(-prompt // block_size) + samples"),
            says="got (4800, 2800)",
        ),
        WrongAnswer(
            "forgets the new token",
            edited(SOLUTION, "(prompt + 1)", "prompt"),
            says="prompt 8, samples 4, B = 4, 100 bytes a token: expected (4800, 2400)",
        ),
        WrongAnswer(
            "bytes of a token for bytes of a block",
            edited(SOLUTION, "block_size * token_bytes", "token_bytes"),
            says="a block is 400 bytes; got (1200, 600)",
        ),
        WrongAnswer(
            "the other way round",
            edited(
                SOLUTION,
                "return copied * block_bytes, shared * block_bytes",
                "return shared * block_bytes, copied * block_bytes",
            ),
            says="expected (4800, 2400), because copied, 4 times 3 blocks",
        ),
    ],
)
