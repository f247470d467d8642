import random
from itertools import count
from types import SimpleNamespace

import pytest

from kvlab import BlockManager, record
from kvlab.beam_tables import plan_moves
from kvlab.views import SharingStepper
from kvlab.views.beam_drawing import living
from kvlab.views.beam_steps import BeamTree, beam_script

from .reading import count_elements, labels, words
from .test_allocator import Simple


def search(width, num_steps, seed=0):
    """A search with random scores: what `BeamSearch.steps` records of it."""
    rng, names = random.Random(seed), (f"b{number}" for number in count(1))
    live, steps = [SimpleNamespace(request_id="b", tokens=(), log_probability=0.0, parent="b")], []
    for step in range(num_steps):
        over = step == num_steps - 1
        chosen = [rng.choice(live) for _ in range(width)]
        moves = plan_moves(
            [beam.request_id for beam in live], [] if over else [b.request_id for b in chosen], names
        )
        grown = [
            SimpleNamespace(
                request_id=child,
                tokens=(*parent.tokens, rng.randrange(1000)),
                log_probability=parent.log_probability - rng.random(),
                parent=parent.request_id,
            )
            for parent, child in zip(chosen, moves.children or [None] * width, strict=True)
        ]
        live, ended = ([], grown) if over else (grown, [])
        steps.append(SimpleNamespace(released=moves.released, forked=moves.forked, beams=live, ended=ended))
    return steps


def test_the_script_does_to_tables_what_the_search_did():
    steps = search(4, 12)
    script, shown = beam_script(steps, 10)
    frames = record(script, BlockManager(64, 4))
    assert all(frame.error is None for frame in frames) and len(frames) == len(shown)
    for number, step in enumerate(steps, start=1):
        last = max(i for i, done in enumerate(shown) if done == number)
        lengths = frames[last].state.lengths
        fed = 10 + number if step.beams else None
        assert lengths == {beam.request_id: fed for beam in step.beams}


def test_without_reserve_the_beams_append_one_after_the_other():
    class Forks(Simple):
        def fork(self, parent, child):
            raise NotImplementedError("fork comes later")

    figure = SharingStepper.of_beams(search(1, 4), 3, Forks)
    assert figure.frames[-1].error is None
    assert [f.operation.kind for f in figure.frames[1:]] == ["append"] * 4 + ["release"]
    figure = SharingStepper.of_beams(search(2, 4), 3, Forks)
    figure.go(2)
    assert "fork comes later" in figure.frames[-1].error
    assert "Wrong: NotImplementedError: fork comes later" in words(figure.static())


def test_only_what_leads_to_a_live_beam_is_living():
    steps = search(4, 9, seed=3)
    for done in range(1, 10):
        alive = living(BeamTree(steps, (), str), done)
        prefixes = {
            one.tokens[: step + 1]
            for one in steps[done - 1].beams or steps[done - 1].ended
            for step in range(done)
        }
        for step in range(done):
            for beam in steps[step].beams:
                if not (step < done - 1 and beam.request_id not in alive[step]):
                    assert beam.tokens in prefixes
                else:
                    assert beam.tokens not in prefixes


def test_the_tree_shows_the_tokens_and_scores_of_its_steps():
    steps = search(3, 4)
    figure = SharingStepper.of_beams(steps, 5, lambda: BlockManager(32, 4), text=lambda token: f"t{token}")
    figure.go(2)
    seen = list(labels(figure.picture.value).values())
    for beam in steps[0].beams:
        assert f"t{beam.tokens[-1]}" in seen
        assert f"{beam.log_probability:.2f}".replace("-", "−") in seen
    assert f"t{steps[1].beams[0].tokens[-1]}" not in seen


def test_a_step_of_all_beams_is_told_in_one_sentence():
    figure = SharingStepper.of_beams(search(4, 3), 6, BlockManager(32, 4))
    told = [frame.telling for frame in figure.frames if frame.operation and frame.operation.kind == "reserve"]
    assert (
        told[0].startswith("All 4 beams append token 6: blocks ") and "2 slots copied from block 1" in told[0]
    )


@pytest.mark.parametrize("width", [1, 4, 6, 12])
@pytest.mark.parametrize("block_size", [1, 4, 16])
def test_frames_weigh_little_and_texts_stay_inside(width, block_size, monkeypatch):
    from kvlab.views.svg import Canvas

    overflowing, write = [], Canvas.svg

    def checked(self, *args, **kwargs):
        overflowing.extend(text for text in self.texts if text[0] < 0 or text[1] > self.width + 1)
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Canvas, "svg", checked)
    figure = SharingStepper.of_beams(
        search(width, 10), 30, BlockManager(600, block_size), text=lambda token: f"unbelievable <{token}>"
    )
    for step in range(len(figure.frames)):
        svg = figure.draw(step, uid="kvlab12")
        assert len(svg.encode()) <= 25_000 and count_elements(svg) <= 100
    assert not overflowing


def test_a_search_without_steps_is_a_sentence():
    with pytest.raises(ValueError, match="at least one step"):
        SharingStepper.of_beams([], 5)
