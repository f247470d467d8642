"""07.beam_step: which tables die, fork and grow in one step of beam search."""

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.trial import Trial, plain, show

STUB = '''\
def beam_step(beams, candidates, width, names):
    """One step of beam search as operations on block tables.

    The `width` candidates with the highest scores survive. A beam without a survivor is
    released. One with several goes on as the best of them, with a fork for each of the others.

    Args:
        beams: names of the live beams, for example ["A", "B", "C"].
        candidates: list of (score, beam), continuations of the beams, no two scores equal.
        width: how many survive.
        names: fresh names for the forked ones, to be used in this order.

    Returns:
        list of lines for a script: first "release X" for each dead beam, then "fork X Y", then
        "append X" once for each survivor. A fork comes before its parent writes.

    Worked line: beams A B, candidates [(-1, "A"), (-2, "A"), (-3, "B")], width 2, names ["C"]
        -> ["release B", "fork A C", "append A", "append C"].
    """
    ...  # about 10 lines
'''

SOLUTION = '''\
def beam_step(beams, candidates, width, names):
    """Release the dead, fork the parents of several survivors, append to all survivors."""
    survivors = [beam for score, beam in sorted(candidates, reverse=True)[:width]]
    releases = [f"release {beam}" for beam in beams if beam not in survivors]
    fresh, forks, writers = list(names), [], []
    for beam in survivors:
        if beam in writers:
            child = fresh.pop(0)
            forks.append(f"fork {beam} {child}")
            writers.append(child)
        else:
            writers.append(beam)
    return releases + forks + [f"append {writer}" for writer in writers]
'''

HINTS = (
    "Sort the candidates, best first, and keep `width` of them. Whoever is not among their beams is dead.",
    "Walk through the survivors with a list of who writes. A beam that is not in it yet goes on as itself; "
    "one "
    "that is in it already needs a fork, and the child writes.",
)

_CASES = [
    (["A", "B"], [(-1.0, "A"), (-2.0, "A"), (-3.0, "B")], 2, ["C"]),
    (["A", "B", "C"], [(-2.5, "B"), (-1.0, "A"), (-3.5, "C"), (-1.5, "A"), (-3.0, "B")], 3, ["D", "E"]),
    (["A", "B", "C"], [(-3.0, "A"), (-2.0, "B"), (-1.0, "C"), (-9.0, "A"), (-8.0, "B")], 3, ["D"]),
    (["A", "B", "C"], [(-1.0, "B"), (-1.1, "B"), (-1.2, "B"), (-4.0, "A"), (-5.0, "C")], 3, ["D", "E"]),
    (["A"], [(-0.5, "A"), (-0.7, "A"), (-0.9, "A"), (-1.5, "A")], 4, ["B", "C", "D"]),
]


def check(trial: Trial) -> str:
    for beams, candidates, width, names in _CASES:
        given = f"beams {beams}, candidates {candidates}, width {width}, names {names}"
        got = plain(trial.call(list(beams), list(candidates), width, list(names), given=given))
        if not isinstance(got, tuple) or not all(isinstance(line, str) for line in got):
            forgot = " (is the `return` missing?)" if got is None else ""
            raise Refused(f"{given}: expected a list of lines such as 'append A'; got {show(got)}{forgot}.")
        _judge(given, [line.split() for line in got], beams, candidates, width, names)
    return (
        "The dead go first, children are forked before their parents write, and every survivor grows by one."
    )


def _judge(
    given: str, lines: list[list[str]], beams: list, candidates: list, width: int, names: list
) -> None:
    survivors = [beam for _, beam in sorted(candidates, reverse=True)[:width]]
    alive = list(dict.fromkeys(survivors))
    scores = f"the best {width} belong to {' '.join(survivors)}"
    dead = [beam for beam in beams if beam not in survivors]
    _expect(given, lines, "release", [[beam] for beam in dead], f"{scores}, so nobody goes on from these")
    due, fresh = [], list(names)
    for number, beam in enumerate(survivors):
        if beam in survivors[:number]:
            due.append([beam, fresh.pop(0)])
    _expect(given, lines, "fork", due, f"{scores}, and a beam that survives twice needs a second table")
    writers = [[name] for name in [*alive, *(child for _, child in due)]]
    _expect(given, lines, "append", writers, "each survivor grows by one token, and nobody else does")
    kinds = [line[0] for line in lines]
    if "append" in kinds and "fork" in kinds[kinds.index("append") :]:
        raise Refused(
            f"{given}: expected every fork before the first append, because a child forked later would hold "
            "its "
            f"parent's new token, too; got {show([' '.join(line) for line in lines])}."
        )
    if kinds != sorted(kinds, key=["release", "fork", "append"].index):
        raise Refused(
            f"{given}: expected every release first, because the blocks of the dead may be needed in this "
            "very "
            f"step; got {show([' '.join(line) for line in lines])}."
        )


def _expect(given: str, lines: list[list[str]], kind: str, due: list[list[str]], because: str) -> None:
    came = [line[1:] for line in lines if line[:1] == [kind]]
    odd = [line for line in lines if line[:1] not in (["release"], ["fork"], ["append"])]
    if odd:
        raise Refused(f"{given}: expected only release, fork and append lines; got {show(' '.join(odd[0]))}.")
    in_order = sorted if kind != "fork" else list
    if in_order(came) != in_order(due):
        wanted, got = ([f"{kind} {' '.join(names)}" for names in some] for some in (due, came))
        raise Refused(
            f"{given}: expected {show(wanted) if wanted else f'no {kind}'}, because {because}; got "
            f"{show(got) if got else 'none'}."
        )


exercise = Exercise(
    id="07.beam_step",
    title="Beam search as moves on block tables",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "keeps the worst",
            edited(SOLUTION, "sorted(candidates, reverse=True)", "sorted(candidates)"),
            says="expected ['release B'], because the best 2 belong to A A",
        ),
        WrongAnswer(
            "the dead keep their blocks",
            edited(SOLUTION, "return releases + forks", "return forks"),
            says="so nobody goes on from these; got none",
        ),
        WrongAnswer(
            "forks for every survivor",
            edited(SOLUTION, "if beam in writers:", "if fresh:"),
            says="a beam that survives twice needs a second table; got",
        ),
        WrongAnswer(
            "no fork",
            edited(SOLUTION, "if beam in writers:", "if False:"),
            says="expected ['fork A C'], because the best 2 belong to A A",
        ),
        WrongAnswer(
            "parents write first",
            edited(
                SOLUTION,
                'releases + forks + [f"append {writer}" for writer in writers]',
                'releases + [f"append {writer}" for writer in writers] + forks',
            ),
            says="expected every fork before the first append, because a child forked later",
        ),
        WrongAnswer(
            "the dead go last",
            edited(
                SOLUTION,
                'releases + forks + [f"append {writer}" for writer in writers]',
                'forks + [f"append {writer}" for writer in writers] + releases',
            ),
            says="expected every release first, because the blocks of the dead may be needed",
        ),
        WrongAnswer(
            "children do not write",
            edited(SOLUTION, "            writers.append(child)\n", ""),
            says="expected ['append A', 'append C'], because each survivor grows by one token",
        ),
        WrongAnswer(
            "the best of each beam, not the best of all",
            edited(
                SOLUTION,
                "[beam for score, beam in sorted(candidates, reverse=True)[:width]]",
                "beams[:width]",
            ),
            says="expected ['release B'], because the best 2 belong to A A, so nobody goes on",
        ),
    ],
)
