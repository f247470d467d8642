import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab import BlockManager, record
from kvlab.faults import EarlyFree
from kvlab.views import SharingStepper
from kvlab.views.fork_tree import fork_tree
from kvlab.views.pointers import pointers
from kvlab.views.sharing_drawing import SharingScene, draw_sharing, sum_up, tell_sharing

from .reading import count_elements, labels, painted, parse, ringed, starts, words
from .test_gates import SIZES, busy_script

SCRIPT = "append A 6; fork A C; append C; append A; append A 3; fork C D; release A; append D 2; append C"
ORDER = [7, 1, 3, 0, 2, 5, 4, 6]


def pages(script, manager):
    frames = record(script, manager)
    scene = SharingScene(frames)
    return scene, frames, [draw_sharing(scene, frames, step) for step in range(len(frames))]


@st.composite
def scripts(draw):
    """Appends, forks and releases in any order, names used again after their end."""
    live, script = [], []
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["append", "append", "fork", "release"]))
        idle = [name for name in "ABCDEFGHIJK" if name not in live]
        if kind == "append" or not live:
            name = draw(st.sampled_from([*live, idle[0]] if idle else live))
            script.append(f"append {name} {draw(st.integers(1, 5))}")
            live += [] if name in live else [name]
        elif kind == "fork" and idle:
            child = draw(st.sampled_from(idle))
            script.append(f"fork {draw(st.sampled_from(live))} {child}")
            live.append(child)
        else:
            live.remove(name := draw(st.sampled_from(live)))
            script.append(f"release {name}")
    return "; ".join(script)


@settings(max_examples=50, deadline=None)
@given(scripts())
def test_every_block_is_drawn_once_and_every_other_entry_points_to_it(script):
    scene, frames, _ = pages(script, BlockManager(40, 4))
    layout = scene.layout
    for frame in frames:
        placed = layout.placed(frame.state, frame.step)
        corners = [placed.corner(block) for block in placed.shown]
        assert len(set(corners)) == len(corners)
        rows, first = layout.rows_for(frame.state), layout.first_entry(frame.state)
        entries = [block for rid in rows for block in frame.state.tables.get(rid, ())[first:]]
        assert set(entries) <= set(placed.shown)
        found = pointers(layout, placed, frame.state)
        in_own_row = [
            block
            for rid, middle in layout.middles(frame.state).items()
            for block in frame.state.tables.get(rid, ())[first:]
            if placed.corner(block)[1] + placed.block_height / 2 == pytest.approx(middle)
        ]
        assert sorted([*in_own_row, *(pointer.block for pointer in found)]) == sorted(entries)


@settings(max_examples=25, deadline=None)
@given(scripts())
def test_every_slot_in_view_shows_exactly_its_requests(script):
    scene, frames, svgs = pages(script, BlockManager(40, 4))
    colours = scene.layout.paints
    for frame, svg in zip(frames, svgs, strict=True):
        placed = scene.layout.placed(frame.state, frame.step)
        expected = {}
        for rid, table in frame.state.tables.items():
            for position in range(frame.state.lengths[rid]):
                slot = (table[position // 4], position % 4)
                if placed.shows(slot[0]):
                    expected.setdefault(slot, set()).add(colours[rid].fill)
        if placed.labelled:
            assert painted(svg, placed, {paint.fill for paint in colours.values()}) == expected


def test_a_fork_points_to_its_parents_blocks():
    scene, frames, svgs = pages(SCRIPT, BlockManager(8, 4, free_order=ORDER))
    placed = scene.layout.placed(frames[2].state, 2)
    found = pointers(scene.layout, placed, frames[2].state)
    assert [(pointer.request_id, pointer.block) for pointer in found] == [("C", 7), ("C", 1)]
    tips = [(x, y) for x, y, data in starts(svgs[2], fill="var(--kv-focus)") if data.endswith("z")]
    for block in (7, 1):
        x, y = placed.corner(block)
        assert (x - 0.5, y + placed.block_height / 2) in tips


def test_holders_are_counted():
    _, _, svgs = pages(SCRIPT, BlockManager(8, 4, free_order=ORDER))
    seen = [[text for text in labels(svg).values() if text.startswith("×")] for svg in svgs]
    assert seen[1] == [] and seen[2] == ["×2", "×2"] and sorted(seen[6]) == ["×2", "×3"]


def test_a_copy_is_an_arrow_between_the_two_blocks_with_its_number_of_slots():
    scene, frames, svgs = pages(SCRIPT, BlockManager(8, 4, free_order=ORDER))
    (copy,) = frames[3].copies
    placed = scene.layout.placed(frames[3].state, 3)
    assert "copy 2 slots" in words(svgs[3])
    bottom = placed.corner(copy.source)[1] + placed.block_height
    top = placed.corner(copy.destination)[1]
    lines = [data for _, y, data in starts(svgs[3], stroke_width="2", fill="none") if y == bottom]
    assert any(float(re.findall(r"[\d.]+", data)[-1]) == top for data in lines)
    assert not any("copy" in word for i, svg in enumerate(svgs) if i not in (3, 8) for word in words(svg))


def test_the_last_holder_writes_in_place():
    scene, frames, svgs = pages(SCRIPT, BlockManager(8, 4, free_order=ORDER))
    assert [dict(here) for here in scene.in_place] == [{}] * 4 + [{1: "A"}] + [{}] * 4 + [{3: "C"}]
    assert ["in place now" in words(svg) for svg in svgs] == [bool(here) for here in scene.in_place]
    assert "Block 1 was shared; A is its last holder and writes in place." in tell_sharing(scene, frames, 4)


def test_a_block_that_was_freed_in_between_is_not_in_place():
    scene, _, _ = pages(
        "append A 6; fork A B; release A; release B; append C 6; append C", BlockManager(2, 4)
    )
    assert not any(scene.in_place)


def test_blocks_stay_in_their_cell_when_their_first_holder_ends():
    scene, frames, _ = pages("append A 4; fork A B; release A; append B", BlockManager(8, 4))
    places = [scene.layout.placed(frame.state, frame.step).corner(0) for frame in frames[1:]]
    assert len(set(places)) == 1


def test_written_slots_are_ringed():
    scene, frames, svgs = pages(SCRIPT, BlockManager(8, 4))
    for frame, svg in zip(frames, svgs, strict=True):
        written = {tuple(slot[:2]) for slots in frame.slots.values() for slot in slots}
        assert ringed(svg, scene.layout.placed(frame.state, frame.step)) == written


def test_the_tree_puts_children_under_their_parents():
    frames = record(
        "append A 2; fork A B; append X; fork B C; fork A D; release B; fork D B", BlockManager(9, 4)
    )
    assert [(row.request_id, row.parent, row.depth) for row in fork_tree(frames)] == [
        ("A", None, 0),
        ("B", "A", 1),
        ("C", "B", 2),
        ("D", "A", 1),
        ("X", None, 0),
    ]


def test_names_that_forked_each_other_have_a_row_each():
    frames = record("append A; fork A B; release A; fork B A", BlockManager(9, 4))
    assert sorted(row.request_id for row in fork_tree(frames)) == ["A", "B"]


def test_what_sharing_saves_is_said():
    _, frames, _ = pages(SCRIPT, BlockManager(8, 4))
    assert sum_up(frames[0].state) == "No table names a block."
    assert sum_up(frames[1].state) == "The tables name 2 blocks, each held once: nothing is shared."
    assert sum_up(frames[2].state) == "The tables name 4 blocks and 2 are in use: sharing saves 2."


def test_a_planted_bug_is_said_and_marked():
    script = "append A 6; fork A B; release B; append C 3"
    _, frames, svgs = pages(script, EarlyFree(8, 4))
    assert frames[-1].error is not None
    assert f"Wrong: {frames[-1].error}" in " ".join(words(svgs[-1])) and "!" in labels(svgs[-1]).values()


def test_a_manager_without_fork_is_a_sentence_in_the_figure():
    class NoFork:
        num_blocks, block_size = 4, 4
        append_slot = release = None

        def block_table(self, request_id):
            return []

        def length(self, request_id):
            return 0

        def free_order(self):
            return [0, 1, 2, 3]

    _, frames, svgs = pages("fork A B", NoFork())
    assert "fork" in frames[-1].error and "Wrong: " in " ".join(words(svgs[-1]))


def test_more_requests_than_rows_keep_the_live_ones():
    script = "append r0 3; " + "; ".join(f"fork r0 r{i}; append r{i}" for i in range(1, 13)) + "; release r1"
    scene, frames, svgs = pages(script, BlockManager(40, 4))
    assert "4 more tables are not drawn." in words(svgs[-1])
    assert "r1" not in scene.layout.rows_for(frames[-1].state)


def test_long_tables_show_their_ends():
    scene, frames, svgs = pages("append A 40; fork A B; append B 2", BlockManager(40, 4))
    assert scene.layout.first_entry(frames[-1].state) == 11 - scene.layout.columns
    assert f"… entry {11 - scene.layout.columns}" in words(svgs[-1])


@pytest.mark.parametrize(("num_blocks", "block_size"), SIZES)
@pytest.mark.parametrize("names", ["ABCD", "ABCDEFGHIJKL", [f"request-{i}" for i in range(9)]])
def test_frames_weigh_little_and_texts_stay_inside(num_blocks, block_size, names, monkeypatch):
    from kvlab.views.svg import Canvas

    overflowing = []
    write = Canvas.svg

    def checked(self, *args, **kwargs):
        overflowing.extend(text for text in self.texts if text[0] < 0 or text[1] > self.width + 1)
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Canvas, "svg", checked)
    script = busy_script(list(names), 40, block_size, seed=num_blocks + block_size)
    _, _, svgs = pages(script, BlockManager(num_blocks, block_size))
    for svg in svgs:
        assert len(svg.encode()) <= 25_000
        assert count_elements(svg) <= 100
        assert svg.count("<title>") == 1 and parse(svg).get("role") == "img"
    assert not overflowing


def test_places_stay_the_same_from_frame_to_frame():
    _, _, svgs = pages(SCRIPT, BlockManager(8, 4))
    assert len({parse(svg).get("viewBox") for svg in svgs}) == 1


def test_the_widget_steps_and_brings_a_picture():
    figure = SharingStepper(SCRIPT, lambda: BlockManager(8, 4))
    figure.go(3)
    assert parse(figure.picture.value).get("data-step") == "3"
    assert figure._repr_mimebundle_()["image/svg+xml"] == figure.static()
    assert "<style" not in figure.picture.value and "copied" in figure.telling.value
    with pytest.raises(ValueError, match="give a script such as"):
        SharingStepper("")
