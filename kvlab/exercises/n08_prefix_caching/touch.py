"""08.touch: a hit takes its blocks, out of the middle of the free list if need be."""

from __future__ import annotations

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n08_prefix_caching.books import books, expect_books, pool_with, told
from kvlab.exercises.trial import Trial

STUB = '''\
def touch(self, blocks):
    """One more holder for each of these blocks, which were found in the cache.

    A block that is free (count 0) leaves the free list, wherever it stands in it; the others
    keep their order. Its content is NOT evicted: it was found because it is still there.

    Args:
        blocks: list of distinct block ids.

    Worked line: free [4, 3, 2, 1], counts all 0, touch([1, 2])
        -> free [4, 3], and blocks 1 and 2 have a count of 1.
    """
    ...  # about 4 lines; self has counts, free (a deque)
'''

SOLUTION = '''\
def touch(self, blocks):
    """One more holder for each block; free ones leave the free list."""
    for block in blocks:
        if self.counts[block] == 0:
            self.free.remove(block)
        self.counts[block] += 1
'''

HINTS = (
    "Only a block with a count of 0 is on the free list. Look before you raise the count.",
    "`self.free.remove(block)` takes it out of the middle. (An engine uses a linked list, so that this "
    "costs the "
    "same however long the queue is.)",
)


def check(trial: Trial) -> str:
    prompt = list(range(12))
    cached = {1: prompt[:4], 2: prompt[:8], 3: prompt}
    for tables, free, blocks in (
        ({}, [4, 3, 2, 1], [1, 2]),
        ({"A": [1, 4]}, [5, 3, 2], [1, 2]),
        ({"A": [1, 2, 3]}, [4, 5], [1, 2, 3]),
        ({}, [2, 1, 3], []),
    ):
        prompts = dict.fromkeys(tables, prompt[:5])
        pool = pool_with(6, 4, tables=tables, free=free, prompts=prompts, cached=cached)
        given, due = f"{told(pool)}, touch({blocks})", books(pool)
        revived = [block for block in blocks if not due["counts"][block]]
        due["free"] = [block for block in due["free"] if block not in revived]
        for block in blocks:
            due["counts"][block] += 1
        why = f"each of {blocks} has one holder more, {revived} were free and are not any more"
        trial.call(pool, blocks, given=given)
        expect_books(pool, due, given=given, because=why)
    return "A hit revives a free block without losing what it holds."


_FREE = "        if self.counts[block] == 0:\n            self.free.remove(block)\n"
_RAISE = "        self.counts[block] += 1\n"

exercise = Exercise(
    id="08.touch",
    title="A hit revives a block",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "stays on the free list: soon given to somebody else",
            edited(SOLUTION, _FREE, ""),
            says="expected free [4, 3] afterwards, because each of [1, 2] has one holder more, [1, 2] were "
            "free",
        ),
        WrongAnswer(
            "no count", edited(SOLUTION, _RAISE, ""), says="expected counts [0, 1, 1, 0, 0, 0] afterwards"
        ),
        WrongAnswer(
            "looks after it has counted",
            edited(SOLUTION, _FREE + _RAISE, _RAISE + _FREE),
            says="expected free [4, 3] afterwards",
        ),
        WrongAnswer(
            "takes held blocks off a list they are not on",
            edited(SOLUTION, "        if self.counts[block] == 0:\n            self", "        self"),
            says="raised ValueError",
        ),
        WrongAnswer(
            "sets the count to 1",
            edited(SOLUTION, "self.counts[block] += 1", "self.counts[block] = 1"),
            says="expected counts [0, 2, 1, 0, 1, 0] afterwards",
        ),
        WrongAnswer(
            "takes from the head instead",
            edited(SOLUTION, "self.free.remove(block)", "self.free.popleft()"),
            says="are not any more; got [2, 1]",
        ),
    ],
)
