"""08.longest_prefix: which blocks already hold the beginning of a prompt."""

from __future__ import annotations

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n08_prefix_caching.books import books, expect_books
from kvlab.exercises.n08_prefix_caching.pool import PrefixBlocks
from kvlab.exercises.trial import Trial

STUB = '''\
def longest_prefix(self, tokens, hashes):
    """The blocks that already hold the beginning of a prompt, in order; only reads.

    Whole blocks, from the first on, up to the first that is not found. A block counts as found
    only if its whole prefix equals the prompt's: an equal hash alone is no proof. At least one
    token must be left to compute (there would be nothing to sample from), so at most
    (len(tokens) - 1) // B blocks.

    Args:
        tokens: the prompt's token ids.
        hashes: their chain_hashes.

    Returns:
        list of block ids. Where several blocks hold the same, the first in `self.found`.

    Worked line: B = 4, 8 tokens, both blocks cached as 3 and 5 -> [3]: the last token
        must be computed.
    """
    ...  # about 9 lines; self has found (hash -> blocks), content (block -> prefix), block_size
'''

SOLUTION = '''\
def longest_prefix(self, tokens, hashes):
    """Blocks with the prompt's beginning, at least one token short of all of it."""
    hits = []
    for number in range((len(tokens) - 1) // self.block_size):
        prefix = tuple(tokens[: (number + 1) * self.block_size])
        known = self.found.get(hashes[number], [])
        same = [block for block in known if self.content[block] == prefix]
        if not same:
            break
        hits.append(same[0])
    return hits
'''

HINTS = (
    "Loop over block numbers 0, 1, 2, ... below `(len(tokens) - 1) // self.block_size` and stop at the first "
    "that is not found.",
    "`self.found.get(hashes[number], [])` are the candidates. One of them is right if `self.content[block]` "
    "equals `tuple(tokens[: (number + 1) * self.block_size])`. Block and prefix, not block alone: with a "
    "weak "
    "hash the same four tokens may follow another beginning.",
)

_TOKENS = list(range(10, 22))


def _pool(entries: list[tuple[int, str, list[int]]], block_size: int = 4) -> PrefixBlocks:
    """A pool that has cached these (block, hash, whole prefix)."""
    pool = PrefixBlocks(12, block_size)
    for block, key, prefix in entries:
        pool.remember(block, key, prefix)
    return pool


def _cases():
    first, second, third = _TOKENS[:4], _TOKENS[:8], _TOKENS
    other = [13, 12, 11, 10]
    full = [(3, "h1", first), (5, "h2", second), (7, "h3", third)]
    yield full, [*_TOKENS, 99], [3, 5, 7], "all three blocks are cached, and token 12 is left to compute"
    yield full, third, [3, 5], "12 tokens fill three blocks, but one token must be left to compute"
    yield full, _TOKENS[:9], [3, 5], "two blocks are full, and token 8 is left to compute"
    yield full, _TOKENS[:4], [], "4 tokens fill one block, but one token must be left to compute"
    yield (
        [full[0], full[2]],
        [*_TOKENS, 99],
        [3],
        "the second block is missing, and KV cannot start in the middle",
    )
    yield full[1:], [*_TOKENS, 99], [], "the first block is missing, and KV cannot start in the middle"
    yield (
        [(9, "h1", first), *full],
        [*_TOKENS, 99],
        [9, 5, 7],
        "blocks 9 and 3 hold the same, and 9 was first",
    )
    clash = [(2, "h1", other)]
    yield clash, [*_TOKENS, 99], [], f"block 2 has the hash h1, but holds {other}: a collision is a miss"
    yield (
        [*clash, full[0]],
        [*_TOKENS, 99],
        [3],
        f"block 2 collides, it holds {other}; block 3 holds the prompt's",
    )
    yield (
        [full[0], (6, "h2", other + second[4:])],
        [*_TOKENS, 99],
        [3],
        f"block 6 holds the right four tokens behind another beginning, {other}",
    )
    yield [], [*_TOKENS, 99], [], "nothing is cached"
    yield full, [10], [], "one token fills no block"


def check(trial: Trial) -> str:
    for entries, tokens, due, because in _cases():
        pool = _pool(entries)
        hashes = [f"h{number + 1}" for number in range(len(tokens) // 4)]
        cached = ", ".join(f"block {block} ({key}) {prefix}" for block, key, prefix in entries) or "nothing"
        given = f"B = 4, cached: {cached}; prompt {tokens}, hashes {hashes}"
        before = books(pool)
        trial.gives(pool, tokens, hashes, expected=due, given=given, because=because)
        expect_books(pool, before, given=given, because="a look-up only reads")
    return "Whole blocks, from the start, compared token by token, and never all of the prompt."


_SAME = " if self.content[block] == prefix"

exercise = Exercise(
    id="08.longest_prefix",
    title="The longest cached prefix",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "the whole prompt may hit",
            edited(SOLUTION, "range((len(tokens) - 1) // self.block_size)", "range(len(hashes))"),
            says="expected [3, 5], because 12 tokens fill three blocks, but one token must be left to "
            "compute",
        ),
        WrongAnswer(
            "trusts the hash",
            edited(SOLUTION, _SAME, ""),
            says="holds [13, 12, 11, 10]: a collision is a miss",
        ),
        WrongAnswer(
            "compares the block's own tokens only",
            edited(
                SOLUTION, _SAME, " if self.content[block][-self.block_size :] == prefix[-self.block_size :]"
            ),
            says="block 6 holds the right four tokens behind another beginning",
        ),
        WrongAnswer(
            "goes on after a miss",
            edited(SOLUTION, "            break\n", "            continue\n"),
            says="the second block is missing, and KV cannot start in the middle",
        ),
        WrongAnswer(
            "the block cached last",
            edited(SOLUTION, "same[0]", "same[-1]"),
            says="hold the same, and 9 was first",
        ),
        WrongAnswer(
            "looks at the first candidate only",
            edited(SOLUTION, "self.found.get(hashes[number], [])", "self.found.get(hashes[number], [])[:1]"),
            says="block 2 collides, it holds [13, 12, 11, 10]; block 3 holds the prompt's",
        ),
        WrongAnswer(
            "one block less, always",
            edited(SOLUTION, "(len(tokens) - 1) // self.block_size", "len(tokens) // self.block_size - 1"),
            says="expected [3, 5, 7], because all three blocks are cached",
        ),
        WrongAnswer("counts tokens", edited(SOLUTION, "return hits", "return len(hits) * 4"), says="got 12"),
    ],
)
