"""08.release: free, but not empty: in which order a finished request's blocks join the queue."""

from __future__ import annotations

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n08_prefix_caching.books import books, expect_books, pool_with, told
from kvlab.exercises.trial import Trial

STUB = '''\
def release(self, request_id):
    """Forget the request; each of its blocks has one holder less. Nothing cached is forgotten.

    Blocks that reach a count of 0 are freed LAST ONE FIRST: those with cached content (in
    `self.hash_of`) join the tail of `self.free`, those without join its head.

    Raises:
        KeyError: no such request. Nothing is changed.

    Worked line: B = 16, 55 tokens in [1, 2, 3, 4], free [5, ..., 10]
        -> free [4, 5, ..., 10, 3, 2, 1].
    """
    ...  # about 10 lines; self has tables, tokens, counts, hash_of, free (a deque)
'''

SOLUTION = '''\
def release(self, request_id):
    """Last block first: cached ones to the tail of the free list, the others to its head."""
    if request_id not in self.tables:
        raise KeyError(f"no request {request_id!r}")
    del self.tokens[request_id]
    for block in reversed(self.tables.pop(request_id)):
        self.counts[block] -= 1
        if self.counts[block] == 0:
            if block in self.hash_of:
                self.free.append(block)
            else:
                self.free.appendleft(block)
'''

HINTS = (
    "`reversed(self.tables.pop(request_id))` walks the table from its end. A block that others hold only "
    "loses "
    "one from its count.",
    "A deque has `append` for the tail and `appendleft` for the head. Do not touch `found`, `hash_of` or "
    "`content`: a freed block can still be found.",
)


def _pools():
    prompt = list(range(55))
    yield (
        pool_with(
            11,
            16,
            tables={"A": [1, 2, 3, 4]},
            free=[5, 6, 7, 8, 9, 10],
            prompts={"A": prompt},
            cached={1: prompt[:16], 2: prompt[:32], 3: prompt[:48]},
        ),
        "A",
    )
    yield (
        pool_with(
            8,
            4,
            tables={"A": [1, 2, 3], "B": [1, 2, 4]},
            free=[5, 6, 7],
            prompts={"A": prompt[:12], "B": prompt[:10]},
            cached={1: prompt[:4], 2: prompt[:8], 3: prompt[:12]},
        ),
        "BA",
    )
    yield pool_with(4, 4, tables={"A": [2]}, free=[], prompts={"A": [1, 2, 3]}, cached={1: prompt[:4]}), "A"


def check(trial: Trial) -> str:
    for pool, order in _pools():
        for request_id in order:
            given, due = f"B = {pool.block_size}, {told(pool)}, release({request_id!r})", books(pool)
            table = due["tables"].pop(request_id)
            del due["tokens"][request_id]
            gone = []
            for block in reversed(table):
                due["counts"][block] -= 1
                if not due["counts"][block]:
                    gone.append(block)
            tail = [block for block in gone if block in due["hash_of"]]
            head = [block for block in gone if block not in due["hash_of"]]
            due["free"] = [*head, *due["free"], *tail]
            why = (
                f"of {table}, last first, {tail} hold cached content and join the tail, {head} hold none "
                "and join "
                "the head, and a freed block stays known"
            )
            trial.call(pool, request_id, given=given)
            expect_books(pool, due, given=given, because=why)
        given, before = f"{told(pool)}, release('Z')", books(pool)
        trial.raises(KeyError, pool, "Z", given=given, because="there is no such request")
        expect_books(pool, before, given=given, because="a call that raises must leave everything as it was")
    return "The end of a prompt is handed out before its beginning, and nothing cached is lost yet."


_TAIL = "                self.free.append(block)\n"
_HEAD = "                self.free.appendleft(block)\n"
_WHERE = "            if block in self.hash_of:\n" + _TAIL + "            else:\n" + _HEAD

exercise = Exercise(
    id="08.release",
    title="Free is not empty",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "first block first",
            edited(SOLUTION, "reversed(self.tables.pop(request_id))", "self.tables.pop(request_id)"),
            says="[3, 2, 1] hold cached content and join the tail, [4] hold none and join the head, and a "
            "freed "
            "block stays known; got [4, 5, 6, 7, 8, 9, 10, 1, 2, 3]",
        ),
        WrongAnswer(
            "everything to the tail",
            edited(SOLUTION, _WHERE, "            self.free.append(block)\n"),
            says="got [5, 6, 7, 8, 9, 10, 4, 3, 2, 1]",
        ),
        WrongAnswer(
            "everything to the head",
            edited(SOLUTION, _WHERE, "            self.free.appendleft(block)\n"),
            says="got [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]",
        ),
        WrongAnswer(
            "cached ones to the head",
            edited(SOLUTION, "if block in self.hash_of", "if block not in self.hash_of"),
            says="got [1, 2, 3, 5, 6, 7, 8, 9, 10, 4]",
        ),
        WrongAnswer(
            "forgets the content of what it frees",
            edited(SOLUTION, _TAIL, _TAIL + "                del self.hash_of[block]\n"),
            says="expected hash_of {1: 'h1', 2: 'h2', 3: 'h3'} afterwards",
        ),
        WrongAnswer(
            "frees what others hold",
            edited(SOLUTION, "self.counts[block] == 0", "True"),
            says="release('B'): expected free [4, 5, 6, 7] afterwards",
        ),
        WrongAnswer(
            "keeps the tokens",
            edited(SOLUTION, "    del self.tokens[request_id]\n", ""),
            says="expected tokens {}",
        ),
    ],
)
