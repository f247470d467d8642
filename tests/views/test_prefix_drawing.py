"""The prefix cache drawn: hashes, hits, the queue, what was evicted, and how much a frame weighs."""

import pytest

from kvlab import BlockManager
from kvlab.views.prefix_telling import short_hash

from .prefix_run import FOCUS, drawn, run
from .reading import count_elements, labels, parse, starts
from .reading import words as texts


def test_every_full_blocks_hash_is_printed_below_it():
    frames = run()
    layout, svgs = drawn(frames)
    seen = labels(svgs[0])
    for row, rid in enumerate(layout.ids):
        for column, link in enumerate(frames[0].chains[rid]):
            x, y = layout.pill(row, column)
            assert seen[round(x + 20), round(y + 12.3)] == short_hash(link)


def test_hits_are_ringed_and_named():
    frames = run()
    layout, svgs = drawn(frames)
    assert [w for w in texts(svgs[3]) if w.startswith("hit: block")] == ["hit: block 0", "hit: block 1"]
    rings = [(x - 10 + 2.5, y + 2.5) for x, y, _ in starts(svgs[3], stroke=FOCUS, stroke_width="2")]
    for ring, column in zip(rings, (0, 1), strict=True):
        assert ring == pytest.approx(layout.box(1, column), abs=0.1)


def test_the_queue_is_drawn_in_order_and_full_blocks_are_dashed():
    frames = run()
    layout, svgs = drawn(frames)
    for frame, svg in zip(frames, svgs, strict=True):
        top = layout.queue_top
        dashed = {
            round(x - 8)
            for x, y, _ in starts(svg, stroke_width="1.2", stroke_dasharray="4 3")
            if y == pytest.approx(top, abs=0.1)
        }
        expected = {
            round(layout.queue_box(place)[0])
            for place, block in enumerate(frame.state.free)
            if block in frame.contents
        }
        assert dashed == expected
        named = [word for word in texts(svg) if word.startswith("block ") and "," not in word]
        assert named[-len(frame.state.free) :] == [f"block {block}" for block in frame.state.free]


def test_what_became_of_an_ended_prompt_is_said():
    _, svgs = drawn(run())
    assert texts(svgs[2]).count("still in block 0") == 1 and "gone" not in texts(svgs[2])
    assert texts(svgs[5]).count("gone") == 2  # one block of A and of B


def test_an_evicted_hash_is_named_in_its_block():
    frames = run()
    _, svgs = drawn(frames)
    assert f"block 1, was {short_hash(frames[4].contents[1])}" in texts(svgs[5])


@pytest.mark.parametrize(("num_blocks", "block_size"), [(64, 16), (7, 4), (40, 1), (12, 6), (30, 2)])
@pytest.mark.parametrize("length", [5, 16, 47, 200])
def test_frames_weigh_little_and_texts_stay_inside(num_blocks, block_size, length, monkeypatch):
    from kvlab.views.svg import Canvas

    overflowing, write = [], Canvas.svg

    def checked(self, *args, **kwargs):
        overflowing.extend(text for text in self.texts if text[0] < 0 or text[1] > self.width + 1)
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Canvas, "svg", checked)
    word = "unbelievably & <long> words "
    prompts = {"A": word * length, "B": word * length + "end", "first request": "x " * length, "D": "y"}
    prompts = {rid: " ".join(p.split()[:length]) for rid, p in prompts.items()}
    script = "append A; release A; append B; append D; release B; append first; append D 3"
    prompts["first"] = prompts.pop("first request")
    frames = run(prompts, script, BlockManager(num_blocks, block_size, prefix_caching=True))
    _, svgs = drawn(frames)
    for svg in svgs:
        assert len(svg.encode()) <= 25_000
        assert count_elements(svg) <= 100
        assert svg.count("<title>") == 1 and parse(svg).get("role") == "img"
    assert not overflowing
