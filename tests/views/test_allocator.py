import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab import BlockManager, record
from kvlab.views import AllocatorStepper
from kvlab.views.allocator_drawing import Scene, draw_frame, tell
from kvlab.views.palette import paints

from .reading import labels, painted, parse, ringed, starts, words


class Simple:
    """The smallest manager that a learner could write; subclasses plant bugs."""

    num_blocks, block_size = 6, 4

    def __init__(self):
        self.free, self.tables, self.lengths = list(range(6)), {}, {}

    def append_slot(self, request_id):
        table, length = self.tables.setdefault(request_id, []), self.lengths.setdefault(request_id, 0)
        if length % 4 == 0:
            table.append(self.take())
        self.lengths[request_id] = length + 1
        return table[length // 4], length % 4

    def take(self):
        return self.free.pop(0)

    def release(self, request_id):
        self.free += self.tables.pop(request_id)
        del self.lengths[request_id]

    def block_table(self, request_id):
        return list(self.tables.get(request_id, []))

    def length(self, request_id):
        return self.lengths.get(request_id, 0)

    def free_order(self):
        return list(self.free)


class KeepsBlockFree(Simple):
    def take(self):
        return self.free[0]


class FreesTwice(Simple):
    def release(self, request_id):
        self.free += self.tables[request_id]
        super().release(request_id)


class SlotOutOfRange(Simple):
    def append_slot(self, request_id):
        block, offset = super().append_slot(request_id)
        return block, offset + 4


class BlockOutOfRange(Simple):
    def take(self):
        return 17


class Raises(Simple):
    def append_slot(self, request_id):
        raise RuntimeError("<b>no & never</b>")


def pages(script, manager):
    frames = record(script, manager)
    scene = Scene(frames)
    return scene, frames, [draw_frame(scene, frames, step) for step in range(len(frames))]


SCRIPT = "append A 7; append B 2; append A; append A; fork A C; append C; append A; release B; append A 5"


def test_pool_tables_and_free_list_show_each_frame():
    manager = BlockManager(8, 4, free_order=[7, 1, 3, 0, 2, 5, 4, 6])
    scene, frames, svgs = pages(SCRIPT, manager)
    colours = paints("ABC")
    for frame, svg in zip(frames, svgs, strict=True):
        expected = {}
        for rid, table in frame.state.tables.items():
            for position in range(frame.state.lengths[rid]):
                expected.setdefault((table[position // 4], position % 4), set()).add(colours[rid].fill)
        assert painted(svg, scene.pool, {paint.fill for paint in colours.values()}) == expected
        rows = {}
        for (_, y), text in sorted(labels(svg).items()):
            rows.setdefault(y, []).append(text)
        shown = list(rows.values())
        for rid, table in frame.state.tables.items():
            assert [rid, str(frame.state.lengths[rid]), *map(str, table)] in shown
        assert [str(block) for block in frame.state.free] in [*shown, []]


def test_the_slots_of_the_step_are_ringed():
    scene, frames, svgs = pages(SCRIPT, BlockManager(8, 4))
    for frame, svg in zip(frames, svgs, strict=True):
        written = {tuple(slot[:2]) for slots in frame.slots.values() for slot in slots}
        assert ringed(svg, scene.pool) == written


def test_arriving_tokens_are_named():
    _, _, svgs = pages(SCRIPT, BlockManager(8, 4))
    assert "A, tokens 0–3" in words(svgs[1]) and "A, token 8" in words(svgs[4])


def test_a_copy_is_an_arrow_with_its_number_of_slots():
    scene, frames, svgs = pages(SCRIPT, BlockManager(8, 4))
    (copy,) = frames[6].copies
    assert f"copy {copy.num_slots} slot" in words(svgs[6])
    left, top = scene.pool.corner(copy.source)
    bottom = top + scene.pool.block_height
    assert any(
        left < x < left + scene.pool.block_width and y == bottom
        for x, y, _ in starts(svgs[6], stroke_width="1.8")
    )
    assert not any("copy" in word for i, svg in enumerate(svgs) if i != 6 for word in words(svg))


@pytest.mark.parametrize("num_blocks", [8, 64])
@given(pair=st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]))
def test_copy_arrows_end_at_their_destination(num_blocks, pair):
    from kvlab.views.allocator_drawing import _copy_route
    from kvlab.views.pool_layout import PoolLayout

    source, destination = (block * num_blocks // 8 for block in pair)
    layout = PoolLayout(num_blocks, 16, 0, lanes=True)
    x, y = _copy_route(layout, source, destination, 0)[-1]
    left, top = layout.corner(destination)
    assert x in (left, left + layout.block_width) and top < y < top + layout.block_height


def test_freed_blocks_are_ringed_in_the_free_list():
    _, _, svgs = pages("append A 5; release A", BlockManager(4, 4))
    assert len(starts(svgs[2], stroke_width="2", fill="none")) == 2


def test_places_stay_the_same_from_frame_to_frame():
    _, _, svgs = pages(SCRIPT, BlockManager(8, 4))
    assert len({parse(svg).get("viewBox") for svg in svgs}) == 1


def test_a_refusal_is_told_and_is_no_error():
    _, frames, svgs = pages("append A 100", BlockManager(2, 4))
    assert "refused" in tell(frames, 1) and not any("Wrong" in line for line in words(svgs[1]))


@pytest.mark.parametrize(
    ("manager", "script", "fragment", "marked"),
    [
        (KeepsBlockFree, "append A", "block 0 is free, yet", [0]),
        (FreesTwice, "append A; release A", "block 0 is on the free list 2 times", [0]),
        (SlotOutOfRange, "append A", "slot 4", []),
        (BlockOutOfRange, "append A", "no such block", [17]),
        (Raises, "append A", "<b>no & never</b>", []),
    ],
)
def test_a_learners_bug_is_drawn_marked_and_said(manager, script, fragment, marked):
    scene, frames, svgs = pages(script, manager())
    assert frames[-1].error is not None
    text = " ".join(words(svgs[-1]))
    assert "Wrong: " in text and fragment in text
    assert fragment in parse(svgs[-1]).findtext("{http://www.w3.org/2000/svg}title")
    assert list(frames[-1].bad_blocks)[: len(marked)] == marked
    seen = list(labels(svgs[-1]).values())
    assert seen.count("!") == len([block for block in marked if scene.pool.shows(block)])


def test_the_same_script_on_a_right_manager_is_not_marked():
    _, frames, svgs = pages("append A 6; append B 3; release A; append B 9", Simple())
    assert frames[-1].error is None and "!" not in labels(svgs[-1]).values()


def test_two_tables_with_one_block_by_mistake_show_both():
    class GivesTwice(Simple):
        def take(self):
            return self.free[0] if self.tables.get("B") is not None else self.free.pop(0)

        def append_slot(self, request_id):
            slot = super().append_slot(request_id)
            if request_id == "B":
                self.tables["B"] = list(self.tables["A"])
                return self.tables["A"][0], slot[1]
            return slot

    scene, frames, svgs = pages("append A; append B", GivesTwice())
    assert frames[-1].error is not None
    colours = paints("AB")
    shown = painted(svgs[-1], scene.pool, {paint.fill for paint in colours.values()})
    assert shown[0, 0] == {colours["A"].fill, colours["B"].fill}


def test_many_requests_keep_to_live_rows_and_say_what_is_missing():
    script = "; ".join(f"append r{i}" for i in range(20))
    _, _, svgs = pages(script, BlockManager(32, 4))
    assert "10 more tables are not drawn." in words(svgs[-1])


def test_a_long_table_keeps_its_end():
    _, _, svgs = pages("append A 64", BlockManager(64, 1))
    assert any(word.endswith("more …") for word in words(svgs[1]))
    assert "63" in labels(svgs[1]).values()


def test_the_widget_takes_a_factory_a_class_a_manager_or_frames():
    frames = record("append A 2", Simple())
    widgets = [
        AllocatorStepper("append A 2", Simple),
        AllocatorStepper("append A 2", lambda: Simple()),
        AllocatorStepper("append A 2", Simple()),
        AllocatorStepper(frames),
    ]
    assert {widget.static() for widget in widgets} == {widgets[0].static()}
    assert AllocatorStepper("append A 2").frames[0].state.num_blocks == 8


@pytest.mark.parametrize("nothing", ["", []])
def test_no_script_is_a_sentence(nothing):
    with pytest.raises(ValueError, match="give a script such as"):
        AllocatorStepper(nothing)
