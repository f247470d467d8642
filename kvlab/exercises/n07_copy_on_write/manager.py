"""07.manager: the learner's functions put together, against thousands of sequences with forks."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.managers import check_manager
from kvlab.exercises.n07_copy_on_write import append_slot, fork, release
from kvlab.exercises.trial import Trial

STUB = """\
# append_slot, release and fork are your functions from above.
MySharing = manager_from(append_slot, release, fork=fork)
"""

HINTS = (
    "The sentence names the pool, the operations and the difference. The picture below it shows what your "
    "own "
    "functions did; the ring is around the last step.",
    "If each function passed its own check, compare what they agree on: a count is the number of tables that "
    "hold the block, 1 for a block just taken, 0 for a free one.",
)


def check(trial: Trial) -> str:
    none_found = "No sequence with forks was found that your manager gets wrong."
    return check_manager(trial, ("append_slot", "release", "fork"), none_found)


exercise = Exercise(
    id="07.manager",
    title="Your manager with forks, against every sequence",
    answer="MySharing",
    kind="class",
    setup="from kvlab.exercises import manager_from",
    stub=STUB,
    hints=HINTS,
    solution=STUB,
    check=check,
    needs=("07.append_slot", "07.release", "07.fork"),
    wrong=[
        WrongAnswer(
            "lost decrement at the copy",
            edited(append_slot.SOLUTION, "        self.counts[copied_from] -= 1\n", "") + "\n\n" + STUB,
            says="the count of block 0 should be 1, because it is in the table of",
        ),
        WrongAnswer(
            "early free: notebook 04's release",
            edited(release.SOLUTION, "        if self.counts[block] == 0:\n            self", "        self")
            + "\n\n"
            + STUB,
            says="fork A B; release A`: after `release('A')` the free list should hold",
        ),
        WrongAnswer(
            "no copy",
            edited(append_slot.SOLUTION, "self.counts[table[-1]] > 1", "False") + "\n\n" + STUB,
            says="after `append A; fork A B; append A`",
        ),
        WrongAnswer(
            "copy not reported",
            edited(append_slot.SOLUTION, "Slot(block, offset, copied_from)", "(block, offset)")
            + "\n\n"
            + STUB,
            says="should say copied_from=0, because the 1 tokens before it are there",
        ),
        WrongAnswer(
            "one list for parent and child",
            edited(fork.SOLUTION, "list(self.tables[parent_id])", "self.tables[parent_id]")
            + "\n\n"
            + edited(append_slot.SOLUTION, "[*table[:-1], self.free.popleft()]", "table").replace(
                "= table\n", "= table\n        table[-1] = self.free.popleft()\n"
            )
            + "\n\n"
            + STUB,
            says="after `append A; fork A B; append A`: tables should be",
        ),
        WrongAnswer(
            "a rare one: the third holder is not counted",
            edited(fork.SOLUTION, "self.counts[block] += 1", "self.counts[block] = 2") + "\n\n" + STUB,
            says="should be 3, because it is in the table of",
        ),
    ],
)
