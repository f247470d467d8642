"""08.chain_hashes: one hash a full block, each taking in the one before."""

from __future__ import annotations

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n08_prefix_caching.pool import ROOT
from kvlab.exercises.trial import Trial

STUB = '''\
def chain_hashes(tokens, block_size, H, salt=None):
    """The hashes of a prompt's full blocks, chained.

    A block's hash takes in the hash of the block before it, so it stands for the whole prefix.

    Args:
        tokens: list of token ids.
        block_size: B, tokens a block.
        H: the hash, called as H(parent, tokens, extra): the hash before (ROOT for block 0), the
            block's own B tokens, and a tuple of whatever else its KV depends on.
        salt: a tenant's secret. It enters block 0 as extra (("salt", salt),) and reaches the
            others through the chain. Without one, and for all other blocks, extra is ().

    Returns:
        list of hashes, one for each FULL block, in order.

    Worked line: B = 4, tokens 0 to 9
        -> [H(ROOT, [0, 1, 2, 3], ()), H(first, [4, 5, 6, 7], ())].
    """
    ...  # about 7 lines
'''

SOLUTION = '''\
def chain_hashes(tokens, block_size, H, salt=None):
    """One hash for each full block: H(parent's hash, own tokens, extra)."""
    parent, hashes = ROOT, []
    for start in range(0, len(tokens) - block_size + 1, block_size):
        extra = (("salt", salt),) if start == 0 and salt is not None else ()
        parent = H(parent, tokens[start : start + block_size], extra)
        hashes.append(parent)
    return hashes
'''

HINTS = (
    "Keep the hash before in a variable that starts as `ROOT`. There are `len(tokens) // block_size` full "
    "blocks; what is left over gets no hash, it may still change.",
    "`parent = H(parent, tokens[start : start + block_size], extra)`, then append it to the list. `extra` is "
    "`()` except for block 0 with a salt.",
)

_CASES = [
    (range(10), 4, None),
    (range(8), 4, None),
    ([5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5], 4, None),
    ([7, 1, 2], 4, None),
    ([], 4, None),
    (range(7), 2, "blue"),
    (range(7), 2, ""),
    ([3, 1, 4], 1, None),
]


class _Numbered:
    """A hash without collisions whose values can be read: h1, h2, ... in the order in which they come up."""

    def __init__(self):
        self._known: dict = {}

    def __call__(self, parent: object, tokens: object, extra: tuple = ()) -> str:
        key = (parent, tuple(tokens), extra)
        return self._known.setdefault(key, f"h{len(self._known) + 1}")


def check(trial: Trial) -> str:
    for tokens, block_size, salt in _CASES:
        tokens, hash_ = list(tokens), _Numbered()
        parent, due, told = ROOT, [], []
        for start in range(0, len(tokens) // block_size * block_size, block_size):
            block = tokens[start : start + block_size]
            extra = (("salt", salt),) if not start and salt is not None else ()
            told.append(f"H({parent}, {block}, {extra})")
            parent = hash_(parent, block, extra)
            due.append(parent)
        because = f"the full blocks are {' and '.join(told)}" if told else "there is no full block"
        given = f"tokens {tokens}, B = {block_size}, salt {salt!r}"
        trial.gives(tokens, block_size, hash_, salt, expected=due, given=given, because=because)
    return "Each hash stands for everything up to the end of its block."


exercise = Exercise(
    id="08.chain_hashes",
    title="A chain of hashes",
    setup="from kvlab.exercises.n08_prefix_caching.pool import ROOT",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "hashes each block for itself",
            edited(SOLUTION, "parent = H(parent, ", "parent = H(ROOT, "),
            says="tokens [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], B = 4, salt None: expected ['h1', 'h2']",
        ),
        WrongAnswer(
            "the partial block, too",
            edited(SOLUTION, "len(tokens) - block_size + 1", "len(tokens)"),
            says="and H(h1, [4, 5, 6, 7], ()); got ['h1', 'h2', 'h3']",
        ),
        WrongAnswer(
            "misses a block that ends with the prompt",
            edited(SOLUTION, "len(tokens) - block_size + 1", "len(tokens) - block_size"),
            says="tokens [0, 1, 2, 3, 4, 5, 6, 7], B = 4, salt None: expected ['h1', 'h2']",
        ),
        WrongAnswer(
            "the last hash only",
            edited(SOLUTION, "return hashes", "return hashes[-1:]"),
            says="expected ['h1', 'h2']",
        ),
        WrongAnswer(
            "no salt",
            edited(SOLUTION, "start == 0 and salt is not None", "False"),
            says="salt 'blue': expected ['h1', 'h2', 'h3'], because the full blocks are H(root, [0, 1], "
            "(('salt', "
            "'blue'),))",
        ),
        WrongAnswer(
            "salt in every block",
            edited(SOLUTION, "start == 0 and salt is not None", "salt is not None"),
            says="salt 'blue': expected",
        ),
        WrongAnswer(
            "an empty salt is no salt",
            edited(SOLUTION, "salt is not None", "salt"),
            says="salt ''",
        ),
        WrongAnswer(
            "all tokens so far, without the parent",
            edited(
                SOLUTION,
                "H(parent, tokens[start : start + block_size], extra)",
                "H(ROOT, tokens[: start + block_size], extra)",
            ),
            says="got ['h1', 'h3']",
        ),
    ],
)
