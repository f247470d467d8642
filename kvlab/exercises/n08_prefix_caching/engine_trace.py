"""08.engine_trace: the learner's pool against every line that a real engine recorded."""

from kvlab.exercises.exercise import Exercise, Refused, Untouched, WrongAnswer, edited
from kvlab.exercises.n08_prefix_caching import chain_hashes, longest_prefix, release, take, touch
from kvlab.exercises.n08_prefix_caching.replaying import Replay
from kvlab.exercises.sources import is_stub
from kvlab.exercises.trial import Trial

STUB = """\
# The five functions are yours, from above.
MyPool = pool_from(chain_hashes, longest_prefix, release, take, touch)
"""

HINTS = (
    "The sentence names the line, the operation and the first field that differs. The next cell prints all "
    "fields of that line, the engine's beside yours.",
    "A wrong hit points at `chain_hashes` or `longest_prefix`, a wrong queue at `release` or `touch`, wrong "
    "evicted blocks at `take`.",
)


def check(trial: Trial) -> str:
    make = trial.answer
    for name, function in getattr(make, "parts", {}).items():
        if is_stub(function):
            raise Untouched(f"`{name}` is still open.")
    needed = ("chain_hashes", "longest_prefix", "release", "take", "touch")
    missing = [name for name in needed if not hasattr(make, name)]
    if missing:
        raise Refused(f"your class has no {' and no '.join(missing)}; pass them to `pool_from`.")
    result = Replay(make)
    if not result.equal:
        raise Refused(result.telling())
    return result.telling()[0].upper() + result.telling()[1:]


def _with(module, old: str, new: str) -> str:
    return edited(module.SOLUTION, old, new) + "\n\n" + STUB


exercise = Exercise(
    id="08.engine_trace",
    title="Your pool against the engine's trace",
    answer="MyPool",
    kind="class",
    setup="from kvlab.exercises.n08_prefix_caching.pool import pool_from",
    stub=STUB,
    hints=HINTS,
    solution=STUB,
    check=check,
    needs=("08.chain_hashes", "08.longest_prefix", "08.release", "08.take", "08.touch"),
    wrong=[
        WrongAnswer(
            "first block first",
            _with(release, "reversed(self.tables.pop(request_id))", "self.tables.pop(request_id)"),
            says="line 8, free r0: expected the free queue [6, 7, 8, 9, 10",
        ),
        WrongAnswer(
            "everything to the tail",
            _with(release, "self.free.appendleft(block)", "self.free.append(block)"),
            says="line 10, free r1: expected the free queue",
        ),
        WrongAnswer(
            "forgets what it frees",
            _with(
                release,
                "                self.free.append(block)\n",
                "                self.free.append(block)\n"
                "                self.found[self.hash_of.pop(block)].remove(block)\n",
            ),
            says="expected a hit of",
        ),
        WrongAnswer(
            "the whole prompt may hit",
            _with(longest_prefix, "range((len(tokens) - 1) // self.block_size)", "range(len(hashes))"),
            says="line 15, new r4 with 2 tokens: expected a hit of 0, because that is what the engine did; "
            "got 2",
        ),
        WrongAnswer(
            "never evicts",
            _with(take, "if block in self.hash_of:", "if False:"),
            says="line 51, new r11 with 8 tokens: expected evicted blocks [5]",
        ),
        WrongAnswer(
            "a revived block stays on the free list",
            _with(touch, "            self.free.remove(block)\n", "            pass\n"),
            says="line 9, new r1 with 9 tokens: expected the number of free blocks 27",
        ),
        WrongAnswer(
            "the block cached last",
            _with(longest_prefix, "same[0]", "same[-1]"),
            says="line 24, new r5 with 9 tokens: expected the table [9, 10, 15, 16, 17]",
        ),
        WrongAnswer(
            "the last hash only",
            _with(chain_hashes, "return hashes", "return hashes[-1:]"),
            says="line ",
        ),
        WrongAnswer(
            "takes from the wrong end",
            _with(take, "self.free.popleft()", "self.free.pop()"),
            says="line 2, new r0 with 5 tokens: expected the table [1, 2, 3], because that is what the "
            "engine did; "
            "got [32, 31, 30]",
        ),
    ],
)
