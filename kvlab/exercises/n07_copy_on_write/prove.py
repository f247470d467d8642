"""07.prove: the three assertions of copy-on-write, judged by what they catch."""

from kvlab.exercises import guard
from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n07_copy_on_write.pad import FAULTS, Pad
from kvlab.exercises.trial import Trial

STUB = '''\
def prove(pad):
    """Three assertions about one fork. They hold on a right pad; a faulty pad trips one of them.

    Write a prompt, fork, let ONE of the two write on, and assert:
        before: right after the fork both tables are equal;
        after: once one has written, the last blocks of the two differ;
        unchanged: the other reads what it read before, the writer reads prompt + its text.

    Args:
        pad: empty, blocks of 4. pad.write("A", "text") appends; pad.fork("A", "B");
            pad.table("A") -> list of blocks; pad.read("A") -> text.

    Raises:
        AssertionError: an assertion does not hold.
    """
    ...  # about 7 lines
'''

SOLUTION = '''\
def prove(pad):
    """Before: shared. After: apart. The other's content: unchanged."""
    pad.write("A", "prompt")
    pad.fork("A", "B")
    assert pad.table("A") == pad.table("B")
    pad.write("B", "!")
    assert pad.table("A")[-1] != pad.table("B")[-1]
    assert pad.read("A") == "prompt"
    assert pad.read("B") == "prompt!"
'''

HINTS = (
    "`assert condition` raises AssertionError by itself. Copy-on-write only has work to do in a PARTIAL "
    "block: "
    "choose a prompt whose length is no multiple of 4.",
    'Write "prompt" (6 characters: a full block and half of one), fork, compare the tables, let B write "!", '
    "compare the last entries, then read both.",
)


def check(trial: Trial) -> str:
    right = guard.run(trial.answer, Pad())
    if not right.ok:
        raise Refused(
            f"a right pad: expected no error, because copy-on-write works there; your {trial.name} "
            f"{right.telling()}."
        )
    for fault, (make, due) in FAULTS.items():
        given = f"a pad with a fault planted, {fault}"
        trial.raises(AssertionError, make(), given=given, because=f"one assertion must find it ({due})")
    return "Each planted fault trips one of your assertions, and a right manager passes them all."


exercise = Exercise(
    id="07.prove",
    title="The three assertions",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "a prompt that ends at a block's end",
            SOLUTION.replace("prompt", "prom"),
            says="two requests that go on in one block: expected an AssertionError",
        ),
        WrongAnswer(
            "does not look before",
            edited(SOLUTION, '    assert pad.table("A") == pad.table("B")\n', ""),
            says="a fork that copies every block at once: expected an AssertionError",
        ),
        WrongAnswer(
            "does not read the other",
            edited(SOLUTION, '    assert pad.read("A") == "prompt"\n', ""),
            says="a copy that destroys its source: expected an AssertionError",
        ),
        WrongAnswer(
            "does not read the writer",
            edited(SOLUTION, '    assert pad.read("B") == "prompt!"\n', ""),
            says="a copy that never happens: expected an AssertionError",
        ),
        WrongAnswer(
            "wants full blocks apart, too",
            edited(
                SOLUTION,
                'assert pad.table("A")[-1] != pad.table("B")[-1]',
                'assert not set(pad.table("A")) & set(pad.table("B"))',
            ),
            says="a right pad: expected no error",
        ),
        WrongAnswer(
            "returns instead of raising",
            edited(SOLUTION, 'assert pad.table("A") == pad.table("B")', "pass").replace("assert ", "return "),
            says="got True",
        ),
    ],
)
