"""13.serve: the loop that answers several prompts at once and gives a finished request's blocks back."""

from collections.abc import Mapping

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.trial import Trial, show

STUB = '''def serve(step, release, prompts, stop_id, max_new_tokens):
    """Answer several prompts at once, greedily; a finished request leaves, the others go on.

    prompts: {"A": [ids], "B": [ids]}.
    step({"A": ids, "B": ids}) feeds new tokens and returns {"A": next_id, "B": next_id}.
    release("A") gives A's blocks back: call it in the same round in which A finishes.
    A is finished at stop_id (no part of its answer), or when its answer has max_new_tokens.
    Returns {"A": [ids], "B": [ids]}, the answers.
    """
    ...  # about 9 lines
'''

SOLUTION = """def serve(step, release, prompts, stop_id, max_new_tokens):
    answers = {request_id: [] for request_id in prompts}
    feed = dict(prompts)
    while feed:
        for request_id, token in step(feed).items():
            if token != stop_id:
                answers[request_id].append(token)
            if token == stop_id or len(answers[request_id]) == max_new_tokens:
                release(request_id)
                del feed[request_id]
            else:
                feed[request_id] = [token]
    return answers
"""

HINTS = (
    "Keep a dict of what to feed next. It starts as a copy of `prompts`; afterwards each running request "
    "feeds only its newest token, because the cache holds the rest.",
    "`while feed:` call `step(feed)` once, then look at each returned token. Finished: `release` it and "
    "`del` it from the dict. Not finished: `feed[request_id] = [token]`.",
)

WRONG = (
    WrongAnswer(
        "never releases", edited(SOLUTION, "                release(request_id)\n", ""), "never released"
    ),
    WrongAnswer(
        "releases at the end",
        edited(SOLUTION, "                release(request_id)\n", "").replace(
            "    return", "    for request_id in prompts:\n        release(request_id)\n    return"
        ),
        "still held its blocks",
    ),
    WrongAnswer(
        "feeds everything again", edited(SOLUTION, "= [token]", "+= [token]"), "the cache holds the rest"
    ),
    WrongAnswer(
        "keeps the stop token",
        edited(
            SOLUTION,
            "            if token != stop_id:\n                answers[request_id].append(token)\n",
            "            answers[request_id].append(token)\n",
        ),
        "the stop token is no part of an answer",
    ),
    WrongAnswer(
        "goes on with a finished request",
        edited(SOLUTION, "del feed[request_id]", "feed[request_id] = [token]"),
        "after it was released",
    ),
    WrongAnswer(
        "stops them all",
        edited(SOLUTION, "del feed[request_id]", "return answers"),
        "the others go on",
    ),
    WrongAnswer(
        "one token too many",
        edited(SOLUTION, "== max_new_tokens", "> max_new_tokens"),
        "an answer has at most 4 tokens",
    ),
)

STOP = 2
MOST = 4
GIVEN = "A's answer is 3 tokens, B's 1, C would never stop, and max_new_tokens is 4"


class _Script:
    """Stands in for the model and the manager: says fixed tokens and notes what it is asked."""

    def __init__(self):
        self.says = {"A": [11, 12, 13, STOP], "B": [21, STOP], "C": [31, 32, 33, 34, 35, 36, 37, 38]}
        self.prompts = {"A": [5, 6, 7], "B": [8], "C": [9, 9]}
        self.fed: dict[str, int] = dict.fromkeys(self.prompts, 0)
        self.finished: dict[str, int] = {}
        self.released: dict[str, int] = {}
        self.round = 0

    def step(self, tokens: Mapping) -> dict:
        self.round += 1
        if not tokens or self.round > 20:
            raise Refused(f"{GIVEN}: step was called with nothing left to do.")
        return {request_id: self._next(request_id, list(ids)) for request_id, ids in tokens.items()}

    def _next(self, request_id: str, ids: list[int]) -> int:
        who = f"{GIVEN}: in round {self.round} {request_id}"
        said, count = self.says[request_id], self.fed[request_id]
        if request_id in self.released:
            raise Refused(f"{who} was fed {ids} after it was released; take it out of the round.")
        if request_id in self.finished and count == MOST:
            raise Refused(f"{who} was fed {ids}, but an answer has at most {MOST} tokens and it has them.")
        if request_id in self.finished:
            raise Refused(f"{who} was fed {ids} after it had said {STOP}, the stop token.")
        due = self.prompts[request_id] if count == 0 else [said[count - 1]]
        if ids != due:
            raise Refused(
                f"{who} was fed {ids}, expected {due}: the prompt once, then only the newest token, because "
                "the cache holds the rest."
            )
        self.fed[request_id] += 1
        if said[count] == STOP or count + 1 == MOST:
            self.finished[request_id] = self.round
        return said[count]

    def release(self, request_id: str) -> None:
        if request_id in self.released:
            raise Refused(f"{GIVEN}: {request_id} was released twice.")
        if request_id not in self.finished:
            raise Refused(
                f"{GIVEN}: {request_id} was released in round {self.round}, before it had finished."
            )
        self.released[request_id] = self.round

    def complaint(self) -> str | None:
        """What is wrong with the times of the releases."""
        for request_id, finished in self.finished.items():
            if request_id not in self.released:
                return f"{request_id} was never released, so its blocks stay taken for good"
            if self.released[request_id] > finished:
                return (
                    f"{request_id} finished in round {finished} and still held its blocks in round "
                    f"{self.released[request_id]}; release it at once, the others need the room"
                )
        return None


def _check(trial: Trial) -> str:
    script = _Script()
    answers = _played(trial, script)
    if not isinstance(answers, dict) or set(answers) != {"A", "B", "C"}:
        raise Refused(f"{GIVEN}: expected a dict with the answers of A, B and C; got {show(answers)}.")
    for request_id, said in script.says.items():
        right = [token for token in said if token != STOP][:MOST]
        _compare(request_id, right, list(answers[request_id]))
    if complaint := script.complaint():
        raise Refused(f"{GIVEN}: {complaint}.")
    return "One step a round for all, and the blocks of a finished answer come back at once."


def _played(trial: Trial, script: _Script) -> object:
    refusals = []

    def guarded(function):
        def call(*args):
            try:
                return function(*args)
            except Refused as refusal:
                refusals.append(refusal)
                raise

        return call

    prompts = {request_id: list(ids) for request_id, ids in script.prompts.items()}
    step, release = guarded(script.step), guarded(script.release)
    try:
        return trial.call(step, release, prompts, STOP, MOST, given=GIVEN)
    except Refused as refusal:
        raise refusals[0] if refusals else refusal from None


def _compare(request_id: str, right: list[int], got: list[int]) -> None:
    if got == right:
        return
    if STOP in got:
        why = f"{STOP} is the stop token, and the stop token is no part of an answer"
    elif len(got) > MOST:
        why = f"an answer has at most {MOST} tokens"
    else:
        why = "that is what the steps returned for it; when one request finishes, the others go on"
    raise Refused(f"{GIVEN}: {request_id}'s answer should be {right}, because {why}; got {got}.")


exercise = Exercise(
    id="13.serve",
    title="A loop that serves several requests",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    wrong=WRONG,
    check=_check,
)
