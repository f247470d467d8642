"""08.take: hand out a block, and only now forget what it held."""

from __future__ import annotations

from kvlab.block_pool import OutOfBlocks
from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n08_prefix_caching.books import books, expect_books, pool_with, told
from kvlab.exercises.trial import Trial

STUB = '''\
def take(self):
    """Hand out the block at the head of the free list, with a count of 1.

    If it still holds cached content, that is evicted now: the block leaves `self.hash_of`,
    `self.content` and its hash's list in `self.found` (an empty list goes, too), and is noted
    in `self.evicted`.

    Returns:
        the block's id.

    Raises:
        OutOfBlocks(needed=1, free=0, total=self.num_blocks - 1): no block is free; the null
            block does not count.
    """
    ...  # about 12 lines
'''

SOLUTION = '''\
def take(self):
    """The next free block; cached content is forgotten only now."""
    if not self.free:
        raise OutOfBlocks(needed=1, free=0, total=self.num_blocks - 1)
    block = self.free.popleft()
    self.counts[block] = 1
    if block in self.hash_of:
        key = self.hash_of.pop(block)
        del self.content[block]
        self.found[key].remove(block)
        if not self.found[key]:
            del self.found[key]
        self.evicted.append(block)
    return block
'''

HINTS = (
    "`self.free.popleft()` gives the block. If it is in `self.hash_of`, four places know about it: "
    "`hash_of`, "
    "`content`, `found`, and from now on `evicted`.",
    "`key = self.hash_of.pop(block)` hands you the hash; `self.found[key].remove(block)` keeps other blocks "
    "with "
    "the same content findable.",
)


def check(trial: Trial) -> str:
    prompt = list(range(8))
    pool = pool_with(
        8,
        4,
        tables={"A": [4]},
        free=[3, 2, 1, 5],
        prompts={"A": prompt[:4]},
        cached={1: prompt[:4], 2: prompt},
    )
    pool.found["h1"].append(4)
    pool.hash_of[4], pool.content[4] = "h1", tuple(prompt[:4])
    for _ in range(4):
        given, due = f"{told(pool)}, take()", books(pool)
        block = due["free"].pop(0)
        due["counts"][block] = 1
        why = f"block {block} is at the head of the free list and holds nothing cached"
        if block in due["hash_of"]:
            key = due["hash_of"].pop(block)
            del due["content"][block]
            due["found"][key].remove(block)
            others = due["found"][key]
            if not others:
                del due["found"][key]
            due["evicted"].append(block)
            stays = (
                f"; block {others[0]} holds the same and stays" if others else ", and nobody else holds it"
            )
            why = f"block {block} is at the head of the free list, its content ({key}) is evicted now{stays}"
        trial.gives(pool, expected=block, given=given, because=why)
        expect_books(pool, due, given=given, because=why)
    given, before = f"{told(pool)}, take()", books(pool)
    error = trial.raises(OutOfBlocks, pool, given=given, because="no block is free")
    expect_books(pool, before, given=given, because="a call that raises must leave everything as it was")
    if (error.needed, error.free, error.total) != (1, 0, 7):
        raise Refused(
            f"{given}: expected OutOfBlocks(needed=1, free=0, total=7), because block 0 of the 8 is the null "
            f"block; got needed={error.needed}, free={error.free}, total={error.total}."
        )
    return "Content is lost at the last moment, and only of the block that is handed out."


_EVICT = SOLUTION[SOLUTION.index("    if block in self.hash_of:") : SOLUTION.index("    return block")]

exercise = Exercise(
    id="08.take",
    title="Evict at the last moment",
    setup="from kvlab import OutOfBlocks",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "hit on a block that is being overwritten",
            edited(SOLUTION, _EVICT, ""),
            says="expected hash_of {1: 'h1', 4: 'h1'} afterwards, because block 2 is at the head of the "
            "free list, "
            "its content (h2) is evicted now",
        ),
        WrongAnswer(
            "forgets every block with this content",
            edited(
                SOLUTION,
                "        self.found[key].remove(block)\n        if not self.found[key]:\n"
                "            del self.found[key]\n",
                "        del self.found[key]\n",
            ),
            says="expected found {'h1': [4]} afterwards",
        ),
        WrongAnswer(
            "an empty list stays behind",
            edited(SOLUTION, "        if not self.found[key]:\n            del self.found[key]\n", ""),
            says="expected found {'h1': [1, 4]} afterwards",
        ),
        WrongAnswer(
            "not noted",
            edited(SOLUTION, "        self.evicted.append(block)\n", ""),
            says="expected evicted [2]",
        ),
        WrongAnswer(
            "the other end of the queue",
            edited(SOLUTION, "self.free.popleft()", "self.free.pop()"),
            says="expected 3, because block 3 is at the head of the free list and holds nothing cached; got "
            "5",
        ),
        WrongAnswer(
            "prefers empty blocks",
            edited(
                SOLUTION,
                "block = self.free.popleft()",
                "block = next((b for b in self.free if b not in self.hash_of), self.free[0])\n"
                "    self.free.remove(block)",
            ),
            says="expected 2, because block 2 is at the head",
        ),
        WrongAnswer(
            "no count",
            edited(SOLUTION, "    self.counts[block] = 1\n", ""),
            says="expected counts [0, 0, 0, 1, 1",
        ),
        WrongAnswer(
            "the null block counts",
            edited(SOLUTION, "total=self.num_blocks - 1", "total=self.num_blocks"),
            says="expected OutOfBlocks(needed=1, free=0, total=7), because block 0 of the 8 is the null "
            "block",
        ),
    ],
)
