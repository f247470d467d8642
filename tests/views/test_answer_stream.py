"""Answers that stream above their blocks: every step can be stepped back to, and says what happened."""

import pytest

from kvlab import BlockManager, PagedSequences, generate
from kvlab.exercises.n13_serve_a_model.lesson import StandIn
from kvlab.views.answer_stream import AnswerStream

from .reading import count_elements, parse

QUESTIONS = {"A": "What is the capital of France? Tell me one fact about it.", "B": "Why is the <sky> blue?"}


@pytest.fixture(scope="module")
def stream():
    decoder = StandIn()
    sequences = PagedSequences(decoder.config, BlockManager(26, 4))
    screen = AnswerStream(sequences, QUESTIONS)
    prompts = {name: decoder.tokenizer.chat(question) for name, question in QUESTIONS.items()}
    tokens = []
    for token in generate(decoder, sequences, prompts, max_new_tokens=24):
        tokens.append(token)
        screen.show(token, difference=1e-5 * (token.step + 1))
    return screen, tokens


def test_every_step_is_kept(stream):
    screen, tokens = stream
    assert [moment.step for moment in screen.moments] == list(range(tokens[-1].step + 2))
    assert screen.slider.max == len(screen.moments) - 1
    for name in QUESTIONS:
        said = "".join(token.text for token in tokens if token.request_id == name)
        assert screen.moments[-1].said[name] == said
    assert screen.moments[1].said["B"] == next(token.text for token in tokens if token.request_id == "B")


def test_ends_on_the_last_step_that_still_holds_something(stream):
    screen, _ = stream
    assert screen.step == len(screen.moments) - 2
    assert screen.moments[screen.step].state.tables and not screen.moments[-1].state.tables


def test_lengths_follow_the_tokens(stream):
    screen, _ = stream
    lengths = [moment.state.lengths.get("B") for moment in screen.moments[1:-1]]
    first = lengths[0]
    assert lengths == list(range(first, first + len(lengths)))


def test_the_line_names_who_left_and_the_blocks_that_came_back(stream):
    screen, _ = stream
    gone = next(m for m in screen.moments[1:] if m.before.tables and "A" not in m.state.tables)
    blocks = len(gone.before.tables["A"])
    line = screen.tell(gone.step)
    assert "A is done" in line and f"A left: {blocks} blocks are free again" in line
    assert f"{1e-5 * gone.step:.0e}" in line


def test_stepping_back_takes_the_text_back_too(stream):
    screen, _ = stream
    at = screen.step
    full = screen.answers.value
    screen.go(1)
    assert len(screen.answers.value) < len(full)
    assert parse(screen.picture.value).get("data-step") == "1"
    screen.go(at)
    assert screen.answers.value == full


def test_questions_are_escaped(stream):
    screen, _ = stream
    assert "&lt;sky&gt;" in screen.answers.value and "<sky>" not in screen.answers.value


def test_pictures_keep_their_size_and_stay_light(stream):
    screen, _ = stream
    sizes = set()
    for step in range(len(screen.moments)):
        svg = screen.draw(step)
        root = parse(svg)
        sizes.add((root.get("width"), root.get("height")))
        assert len(svg.encode()) <= 25_000 and count_elements(svg) <= 100
    assert len(sizes) == 1


def test_redraws_at_most_four_times_a_second(stream, monkeypatch):
    screen, tokens = stream
    again = AnswerStream(screen._sequences, QUESTIONS)
    monkeypatch.setattr("kvlab.views.answer_stream.time.monotonic", lambda: 1000.0)
    drawn = []
    monkeypatch.setattr(again, "redraw", lambda: drawn.append(1))
    monkeypatch.setattr(screen._sequences, "request_ids", lambda: ["B"])
    monkeypatch.setattr(again, "_now", lambda: screen.moments[1].state)
    for token in tokens:
        again.show(token)
    assert len(drawn) == 1
