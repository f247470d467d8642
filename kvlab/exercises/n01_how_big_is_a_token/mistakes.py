"""01.mistakes: what a wrong head count costs, in tokens of a real budget."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.lines import judge_lines
from kvlab.exercises.trial import Trial

BUDGET, LAYERS, DIM, WIDTH = 6_103_285_709, 28, 128, 2

STUB = """\
planned = {  # tokens = budget // bytes a token; budget 6_103_285_709 B, 28 layers, 128 numbers, float16
    "4 KV heads": ...,  # right for Qwen2.5-7B
    "28 query heads": ...,  # counted by mistake
    "1 KV head": ...,  # counted by mistake
}
"""

SOLUTION = """\
planned = {  # tokens = budget // bytes a token; budget 6_103_285_709 B, 28 layers, 128 numbers, float16
    "4 KV heads": 6_103_285_709 // 57_344,
    "28 query heads": 6_103_285_709 // (7 * 57_344),
    "1 KV head": 6_103_285_709 // (57_344 // 4),
}
"""

HINTS = (
    "You have `token_bytes` already: `6_103_285_709 // token_bytes(28, 28, 4, 128, 2)` is the first line.",
    "For the other two only the number of stored heads changes: 28 heads are 7 times as many bytes, 1 head "
    "is "
    "a quarter. Whole tokens only, so divide with `//`.",
)


def _line(heads: int) -> tuple[int, str]:
    size = 2 * LAYERS * heads * DIM * WIDTH
    stored = f"{heads} stored head{'s' * (heads != 1)}"
    return BUDGET // size, f"with {stored} a token takes {size:,} bytes, and only whole tokens count"


def check(trial: Trial) -> str:
    due = {"4 KV heads": _line(4), "28 query heads": _line(28), "1 KV head": _line(1)}
    judge_lines(trial, due, "planned")
    return (
        "Query heads: you buy 7 times the memory you need. Too few heads: you promise 4 times what fits, and "
        "the engine runs out of memory while it serves."
    )


exercise = Exercise(
    id="01.mistakes",
    title="Two wrong head counts, priced",
    kind="value",
    answer="planned",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "fractions of a token",
            edited(SOLUTION, "// 57_344", "/ 57_344"),
            says="4 KV heads: expected 106432",
        ),
        WrongAnswer(
            "forgets V",
            edited(SOLUTION, "// 57_344", "// 28_672"),
            says="with 4 stored heads a token takes 57,344 bytes",
        ),
        WrongAnswer(
            "multiplies for the query heads",
            edited(SOLUTION, "// (7 * 57_344)", "* 7 // 57_344"),
            says="28 query heads: expected 15204",
        ),
        WrongAnswer(
            "one head is no mistake",
            edited(SOLUTION, "// (57_344 // 4)", "// 57_344"),
            says="1 KV head: expected 425731",
        ),
    ],
)
