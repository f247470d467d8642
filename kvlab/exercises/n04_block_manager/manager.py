"""04.manager: the learner's functions put together, against thousands of sequences of operations."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.managers import check_manager
from kvlab.exercises.n04_block_manager import append, append_slot, release
from kvlab.exercises.trial import Trial

STUB = """\
# append_slot, release and append are your functions from above.
MyManager = manager_from(append_slot, release, append)
"""

HINTS = (
    "The sentence names the pool, the operations and the difference. Step through it in the next cell: the "
    "picture"
    " shows what your own functions did.",
    "If each function passed its own check, look at what one leaves behind for the others: a length that "
    "stays after"
    " a release, a block that is taken before the refusal.",
)


def check(trial: Trial) -> str:
    none_found = "No sequence of operations was found that your manager gets wrong."
    return check_manager(trial, ("append_slot", "release"), none_found)


exercise = Exercise(
    id="04.manager",
    title="Your manager against every sequence",
    answer="MyManager",
    kind="class",
    setup="from kvlab import OutOfBlocks\nfrom kvlab.exercises import manager_from",
    stub=STUB,
    hints=HINTS,
    solution=STUB,
    check=check,
    needs=("04.append_slot", "04.release", "04.append"),
    wrong=[
        WrongAnswer(
            "length kept after a release",
            edited(release.SOLUTION, "    del self.lengths[request_id]\n", "") + "\n\n" + STUB,
            says="after `append A; release A; append A`",
        ),
        WrongAnswer(
            "table kept after a release",
            edited(release.SOLUTION, "self.tables.pop(request_id)", "self.tables[request_id]")
            + "\n\n"
            + STUB,
            says="after `append A; release A`",
        ),
        WrongAnswer(
            "a block for every token",
            edited(append_slot.SOLUTION, "if logical_block == len(table):", "if True:") + "\n\n" + STUB,
            says="with 2 blocks of 2, after `append A 3`",
        ),
        WrongAnswer(
            "an empty table stays behind a refusal",
            edited(
                append_slot.SOLUTION,
                "self.tables.get(request_id, [])",
                "self.tables.setdefault(request_id, [])",
            )
            + "\n\n"
            + STUB,
            says="yet request 'B' now exists",
        ),
        WrongAnswer(
            "partial allocation before a refusal",
            edited(append.SOLUTION, "    if needed > len(self.free):\n", "    if not self.free:\n")
            + "\n\n"
            + STUB,
            says="`append('A', 3)` was refused, so nothing may change",
        ),
        WrongAnswer(
            "one list for all requests",
            edited(
                append_slot.SOLUTION,
                "table = [*table, self.free.popleft()]",
                "table.append(self.free.popleft())",
            )
            .replace("(self, request_id)", "(self, request_id, new=[])")
            .replace("self.tables.get(request_id, [])", "self.tables.get(request_id, new)")
            + "\n\n"
            + STUB,
            says="`append A",
        ),
        WrongAnswer(
            "waits when the pool is full",
            edited(
                append_slot.SOLUTION,
                "        if not self.free:\n",
                "        while not self.free:\n            pass\n        if False:\n",
            )
            + "\n\n"
            + STUB,
            says="a loop that never ends?",
        ),
        WrongAnswer(
            "a rare one: the fifth block of a request is lost",
            edited(
                append_slot.SOLUTION,
                "        table = [*table, self.free.popleft()]\n",
                "        if len(table) == 4:\n            self.free.popleft()\n        table = [*table, "
                "self.free.popleft()]\n",
            )
            + "\n\n"
            + STUB,
            says="after `append A 5`",
        ),
    ],
)
