"""08.savings: a system prompt shared by many, counted in tokens and bytes."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n08_prefix_caching.worked import check_lines
from kvlab.exercises.trial import Trial

STUB = """\
savings = {  # B = 16, 57,344 bytes a token; a question of 100 tokens follows the system prompt
    "hit, system prompt of 2000": ...,  # tokens of the system prompt that the next request finds
    "hit, system prompt of 2001": ...,
    "bytes, 16 copies of 2000": ...,  # if each of 16 requests had its own
    "bytes, shared by 16": ...,  # what is really stored
    "share saved": ...,  # of the 16 copies, as a fraction such as 3 / 4
}
"""

SOLUTION = """\
savings = {  # B = 16, 57,344 bytes a token; a question of 100 tokens follows the system prompt
    "hit, system prompt of 2000": 2000,  # 125 blocks of 16, every one of them full
    "hit, system prompt of 2001": 2000,  # token 2000 shares its block with the question
    "bytes, 16 copies of 2000": 2000 * 57_344 * 16,  # 1.835 GB
    "bytes, shared by 16": 2000 * 57_344,  # somebody has to store it once
    "share saved": 15 / 16,
}
"""

HINTS = (
    "2000 / 16 = 125 exactly. The 126th block of the longer prompt holds its last token and 15 tokens of a "
    "question, and every question is different.",
    "16 requests name 16 times the blocks, the pool holds them once: 1 of 16 remains, 15 of 16 are saved.",
)


def check(trial: Trial) -> str:
    one, token = 2000 * 57_344, 57_344
    due = {
        "hit, system prompt of 2000": (
            2000,
            "2000 tokens are 125 whole blocks, and a question comes after them",
        ),
        "hit, system prompt of 2001": (
            2000,
            "token number 2000 is alone in block 125 with the first 15 tokens of the question, so that block "
            "differs from request to request",
        ),
        "bytes, 16 copies of 2000": (16 * one, f"16 * 2000 tokens * {token} bytes"),
        "bytes, shared by 16": (
            one,
            f"the first request has to store 2000 * {token} bytes; the others find it",
        ),
        "share saved": (15 / 16, "one copy of 16 is stored after all, so 15 of 16 are saved"),
    }
    check_lines(trial, "savings", due)
    return "1.835 GB counted, 0.115 GB stored, 1.720 GB saved."


exercise = Exercise(
    id="08.savings",
    title="What sixteen requests save",
    kind="value",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "one token of the system prompt is left over",
            edited(SOLUTION, "2000,  # 125", "1984,  # 125"),
            says="hit, system prompt of 2000: expected 2000, because 2000 tokens are 125 whole blocks",
        ),
        WrongAnswer(
            "the last token hits, too",
            edited(SOLUTION, "2000,  # token", "2001,  # token"),
            says="token number 2000 is alone in block 125 with the first 15 tokens of the question",
        ),
        WrongAnswer(
            "the block before is lost, too",
            edited(SOLUTION, "2000,  # token", "1984,  # token"),
            says="hit, system prompt of 2001: expected 2000",
        ),
        WrongAnswer(
            "nothing is stored",
            edited(SOLUTION, "2000 * 57_344,  # somebody", "0,  # somebody"),
            says="the first request has to store",
        ),
        WrongAnswer(
            "all of it saved", edited(SOLUTION, "15 / 16", "1.0"), says="one copy of 16 is stored after all"
        ),
        WrongAnswer(
            "forgets the sixteen",
            edited(SOLUTION, "2000 * 57_344 * 16,", "2000 * 57_344,"),
            says="bytes, 16 copies of 2000: expected 1835008000",
        ),
    ],
)
