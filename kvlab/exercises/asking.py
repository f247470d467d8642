"""predict and reveal: a guess before the picture, compared after it. Nothing here ever blocks or raises."""

from __future__ import annotations

import html
import re
from typing import Any

from kvlab.exercises import store
from kvlab.exercises.registry import Prediction, UnknownId, get_prediction
from kvlab.exercises.telling import MARKS, box, say, show, with_code

_MISSING = object()


def predict(id: str, question: str | None = None, *, answer: Any = _MISSING):
    """Ask for a guess, which is kept and judged only by `reveal(id)`.

    predict("03.token6", "block, slot") shows a small form, with the text as the label of its field;
    predict("03.token6", answer=(1, 2)) keeps an answer in plain code.
    """
    try:
        prediction = get_prediction(id)
    except UnknownId as error:
        say(str(error))
        return None
    if answer is _MISSING:
        return form(prediction, question)
    say(keep(prediction, answer))
    return None


def reveal(id: str) -> None:
    """Say what was predicted, what is right, and why. Without a prediction the answer stays folded away."""
    try:
        prediction = get_prediction(id)
    except UnknownId as error:
        say(str(error))
        return
    kept = store.load()["predictions"].get(id)
    right = f"{_text(prediction.right)}: {prediction.why}"
    if kept is None:
        sentence = f"No prediction yet, and that is fine. The answer is {right}"
        folded = (
            f"No prediction yet, and that is fine. "
            f"<details><summary>Show the answer</summary>{with_code(right)}</details>"
        )
        show(f"{MARKS['note']} {sentence}", box(folded, "note"))
    elif is_right(prediction, kept.get("answer")):
        say(f"You predicted {_text(kept.get('answer'))}, and it is {right}", "passed")
    else:
        say(f"You predicted {_text(kept.get('answer'))}; it is {right}", "failed")


def is_right(prediction: Prediction, answer: Any) -> bool:
    """Numbers are compared in order, wherever they stand in the text; choices as text."""
    if isinstance(prediction.right, str):
        return str(answer).strip().casefold() == prediction.right.casefold()
    return _numbers(answer) == _numbers(prediction.right)


def keep(prediction: Prediction, answer: Any) -> str:
    """Keep the answer; returns the sentence to say."""
    if isinstance(answer, str) and not answer.strip():
        return "Nothing is kept yet: type your guess first."
    if prediction.choices and str(answer) not in prediction.choices:
        return f"{answer!r} is not one of the choices: {', '.join(prediction.choices)}."
    if not isinstance(prediction.right, str) and not _numbers(answer):
        return f"{_text(answer)} holds no number; the question wants {_shape(prediction.right)}."
    text = _text(answer)
    done = store.update(
        lambda data: data["predictions"].update({prediction.id: {"answer": text, "at": store.now()}})
    )
    return f"Kept: {text}. On to the picture." if done else f"Noted, though not kept: {text}."


def form(prediction: Prediction, label: str | None = None):
    """The small form as a widget; its parts carry the class kvlab-predict."""
    import ipywidgets as w

    earlier = store.load()["predictions"].get(prediction.id, {}).get("answer")
    said = w.HTML(_note(f"Kept earlier: {earlier}." if earlier else ""))
    if prediction.choices:
        chosen = earlier if earlier in prediction.choices else None
        field = w.ToggleButtons(
            options=list(prediction.choices), value=chosen, style={"button_width": "auto"}
        )
        row = [field, said]
    else:
        placeholder = label or _shape(prediction.right)
        field = w.Text(value=earlier or "", placeholder=placeholder, continuous_update=False)
        field.layout.width, field.tooltip = "12em", prediction.question
        button = w.Button(description="Keep my guess", tooltip="Keep my guess")
        button.on_click(lambda _: take())
        row = [field, button, said]

    def take(*_: Any) -> None:
        if field.value is not None:
            said.value = _note(keep(prediction, field.value))

    field.observe(take, names="value")
    asked = w.HTML(f'<div style="line-height:1.5"><b>Predict.</b> {with_code(prediction.question)}</div>')
    whole = w.VBox([asked, w.HBox(row, layout={"flex_flow": "row wrap"})])
    whole.add_class("kvlab-predict")
    return whole


def _note(sentence: str) -> str:
    return f'<span style="opacity:.85">{html.escape(sentence, quote=False)}</span>' if sentence else ""


def _numbers(value: Any) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", str(value))]


def _shape(right: object) -> str:
    if isinstance(right, tuple):
        return f"{len(right)} numbers"
    return "a number"


def _text(value: Any) -> str:
    return str(value).strip()
