"""Answers that stream above the blocks that hold them; every step is kept, to step back to."""

import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import ipywidgets

from kvlab.block_pool import Event
from kvlab.block_table import Slot
from kvlab.recording import Frame
from kvlab.state import State, snapshot
from kvlab.views.allocator_drawing import Scene, draw_frame
from kvlab.views.palette import Paint, paints
from kvlab.views.stepper import Stepper
from kvlab.views.text import escape

_SECONDS = 0.25  # between two redraws while text streams
_ROOM = 16  # table entries that always have a place
_LETTER = (
    "flex:none;width:26px;height:22px;line-height:22px;border-radius:6px;text-align:center;font-weight:700"
)


@dataclass
class Moment:
    """One step of the model: the blocks after it, and what each request has said by then."""

    step: int
    state: State
    before: State | None
    said: dict[Hashable, str]
    words: dict[Hashable, str] = field(default_factory=dict)
    left: dict[Hashable, str] = field(default_factory=dict)
    difference: float | None = None


class AnswerStream(Stepper):
    """Shows tokens as they come, at most four times a second; afterwards the buttons step through all of it.

        screen = AnswerStream(sequences, {"A": "Why is the sky blue?"})
        display(screen)
        for token in generate(...):
            screen.show(token)

    Args:
        sequences: PagedSequences; its manager's blocks are drawn.
        questions: request id -> what was asked.
    """

    def __init__(self, sequences, questions: Mapping[Hashable, str]):
        self._sequences, self._questions = sequences, dict(questions)
        self._paints = paints(questions)
        self.moments = [Moment(0, self._now(), None, dict.fromkeys(questions, ""))]
        self._drawn_at = 0.0
        self.answers = ipywidgets.HTML()
        super().__init__(1)
        self.children = [self.answers, *self.children]

    def show(self, token, *, difference: float | None = None) -> None:
        """Take in one StreamedToken. difference: how far its logits are from another run's, if compared."""
        moment = self.moments[-1]
        if token.step + 1 != moment.step:
            moment = Moment(
                token.step + 1, self._now(), moment.state, dict(moment.said), {}, dict(moment.left)
            )
            self.moments.append(moment)
        moment.said[token.request_id] += token.text
        moment.words[token.request_id] = token.text
        if token.finished:
            moment.left[token.request_id] = token.finished
        if difference is not None:
            moment.difference = max(difference, moment.difference or 0.0)
        ended = not self._sequences.request_ids()
        if ended or time.monotonic() - self._drawn_at > _SECONDS:
            self._drawn_at = time.monotonic()
            self._last = len(self.moments) - 1
            self.slider.max = self._last
            # The last step's pool is empty; the one before shows where everything was.
            self.go(self._last - 1 if ended else self._last)

    def redraw(self) -> None:
        """Build text, picture and line of the current step and show them."""
        moment = self.moments[self._step]
        self.answers.value = answers_html(self._questions, moment, self._paints)
        super().redraw()

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of the pool, the tables and the free list after a step."""
        frames = [frame_of(moment) for moment in self.moments]
        scene = Scene([_roomy(self.moments[0]), *frames])
        return draw_frame(scene, frames, step, uid=uid, standalone=standalone)

    def tell(self, step: int) -> str:
        """The step in one line."""
        return f"step {step} of {len(self.moments) - 1}\u2003{telling(self.moments[step])}"

    def _now(self) -> State:
        return snapshot(self._sequences.manager, self._sequences.request_ids())


def answers_html(questions: Mapping[Hashable, str], moment: Moment, colours: Mapping[Hashable, Paint]) -> str:
    """Question and answer so far of each request, beside its letter on its colour."""
    rows = []
    for request_id, question in questions.items():
        paint = colours[request_id]
        end = {"stop": " ■", "length": " …"}.get(moment.left.get(request_id, ""), " ▌" if moment.step else "")
        said = escape(moment.said[request_id].strip()) + end
        letter = (
            f'<span style="{_LETTER};background:{paint.fill};color:{paint.ink}">{escape(paint.label)}</span>'
        )
        asked = f'<div style="opacity:.75">{escape(question)}</div>'
        text = f'<div>{asked}<div style="font-size:1.15em;min-height:1.5em">{said}</div></div>'
        rows.append(f'<div style="display:flex;gap:12px;margin:4px 12px 8px">{letter}{text}</div>')
    return f'<div class="kvlab-answers" style="max-width:60em;line-height:1.5">{"".join(rows)}</div>'


def telling(moment: Moment) -> str:
    """One line: who said what, who left and how many blocks came back, and how far the logits are off."""
    if moment.before is None:
        return "Nothing is written yet: all blocks are free."
    parts = [_said(request_id, moment) for request_id in moment.words]
    gone = [request_id for request_id in moment.before.tables if request_id not in moment.state.tables]
    if gone:
        blocks = sum(len(moment.before.tables[request_id]) for request_id in gone)
        parts.append(f"{' and '.join(map(str, gone))} left: {blocks} blocks are free again")
    line = f"{', '.join(parts)}."
    if moment.difference is not None:
        line += f" Largest logit difference to the contiguous run: {moment.difference:.0e}."
    return line


def _said(request_id: Hashable, moment: Moment) -> str:
    word = moment.words[request_id]
    if not word and moment.left.get(request_id) == "stop":
        return f"{request_id} is done"
    return f"{request_id} says “{word.strip() or word}”".replace("\n", "⏎")


def frame_of(moment: Moment) -> Frame:
    """The moment as a frame for the allocator's drawing: new slots ringed, freed blocks marked."""
    slots, freed = {}, []
    if moment.before is not None:
        for request_id, table in moment.state.tables.items():
            first, end = moment.before.lengths.get(request_id), moment.state.lengths[request_id]
            if first is not None:  # a prompt's many slots would only clutter the picture
                slots[request_id] = [_slot(table, p, moment.state.block_size) for p in range(first, end)]
        freed = [Event("free", block, None) for block in moment.state.free if block not in moment.before.free]
    return Frame(moment.step, None, moment.state, telling(moment), slots, [], freed)


def _slot(table: tuple[int, ...], position: int, block_size: int) -> Slot:
    return Slot(table[position // block_size], position % block_size)


def _roomy(moment: Moment) -> Frame:
    """A made-up frame with a long table, so that the picture keeps its size while tables grow."""
    state = moment.state
    tables = dict.fromkeys(moment.said, ())
    tables[next(iter(tables))] = tuple(range(min(state.num_blocks, _ROOM)))
    roomy = State(state.num_blocks, state.block_size, tables, dict.fromkeys(tables, 0), ())
    return Frame(0, None, roomy, "", {}, [], [])
