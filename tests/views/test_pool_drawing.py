import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.state import State
from kvlab.views.contents import is_block, read_blocks
from kvlab.views.map_drawing import draw_map, tell_map
from kvlab.views.palette import paints
from kvlab.views.pool_layout import MOST_SHOWN, PoolLayout

from .reading import labels, painted, starts, words


def state_of(tables, lengths, num_blocks=8, block_size=4, free=None, **more):
    used = {block for table in tables.values() for block in table}
    free = tuple(b for b in range(num_blocks) if b not in used) if free is None else free
    tables = {rid: tuple(table) for rid, table in tables.items()}
    return State(
        num_blocks=num_blocks, block_size=block_size, tables=tables, lengths=lengths, free=free, **more
    )


@st.composite
def states(draw):
    block_size = draw(st.sampled_from([1, 2, 3, 4, 7, 16]))
    num_blocks = draw(st.sampled_from([1, 5, 8, 16, 40, 64]))
    names = draw(st.lists(st.sampled_from(["A", "B", "C", "x", "long name", 7]), max_size=5, unique=True))
    tables, lengths = {}, {}
    for name in names:
        table = draw(st.lists(st.integers(0, num_blocks - 1), max_size=5, unique=True))
        tables[name] = tuple(table)
        lengths[name] = draw(st.integers(0, len(table) * block_size))
    return state_of(tables, lengths, num_blocks, block_size)


def expected_colours(state):
    """Slot -> colours, from a walk over positions; at most as many tokens as slots, so always small."""
    colours, seen = paints(state.tables), {}
    for rid, table in state.tables.items():
        for position in range(state.lengths[rid]):
            slot = (table[position // state.block_size], position % state.block_size)
            seen.setdefault(slot, set()).add(colours[rid].fill)
    return seen


@settings(max_examples=60)
@given(states())
def test_every_slot_shows_exactly_its_requests(state):
    layout = PoolLayout(state.num_blocks, state.block_size, 0)
    fills = {paint.fill for paint in paints(state.tables).values()}
    assert painted(draw_map(state), layout, fills) == expected_colours(state)


def test_small_pools_print_positions_in_their_slots():
    state = state_of({"A": [7, 1]}, {"A": 7})
    layout, seen = PoolLayout(8, 4, 0), labels(draw_map(state))
    for position in range(7):
        block, offset = (7, 1)[position // 4], position % 4
        x, y = layout.slot(block, offset)
        assert seen[round(x + 13), round(y + 13 + 4)] == str(position)


def test_large_pools_drop_positions_but_keep_ids_and_letters():
    seen = sorted(labels(draw_map(state_of({"A": [63]}, {"A": 16}, 64, 16))).values())
    assert seen == sorted([*map(str, range(64)), "A"])


def test_positions_fit_their_slot_and_texts_the_figure():
    state = state_of({"A": range(8)}, {"A": 96}, 16, 12)
    assert PoolLayout(16, 12, 0).labelled
    assert "95" in labels(draw_map(state)).values()


def test_unused_slots_of_a_held_block_are_hatched_and_others_outlined():
    svg = draw_map(state_of({"A": [7, 1]}, {"A": 5}))
    hatched = [data for data in starts(svg, stroke=paints("A")["A"].fill) if "q" in data[2]]
    assert len(hatched) == 3
    # six free blocks of four outlines, and one in the legend
    assert len(starts(svg, stroke="var(--kv-line)", fill="none")) == 6 * 4 + 1


def test_shared_blocks_have_both_colours_letters_and_a_count():
    svg = draw_map(state_of({"A": [7, 1], "C": [7, 1, 3]}, {"A": 8, "C": 9}, may_share=True))
    seen = list(labels(svg).values())
    assert seen.count("×2") == 2 and seen.count("A") == 2 and seen.count("C") == 3


def test_a_block_shared_by_mistake_is_marked_and_still_shows_its_holders():
    svg = draw_map(state_of({"A": [7], "B": [7]}, {"A": 4, "B": 2}))
    seen = list(labels(svg).values())
    assert seen.count("!") == 1 and seen.count("A") == 1 and seen.count("B") == 1
    assert any("in the tables of A and B" in line for line in words(svg))


def test_cached_free_blocks_are_dashed():
    state = state_of({}, {})
    assert starts(draw_map(state), stroke_dasharray="3 2") == []
    assert len(starts(draw_map(state, cached={4: 4, 5: 2}), stroke_dasharray="3 2")) == 4 + 2 + 1
    assert "free, cached" in words(draw_map(state, cached={4: 4}))


@pytest.mark.parametrize(
    ("state", "fragment"),
    [
        (state_of({"A": [1]}, {"A": 4}, free=(0, 1, 2, 3, 4, 5, 6, 7)), "free"),
        (state_of({"A": [1]}, {"A": 4}, free=(0, 2, 3, 4, 5, 6)), "lost"),
        (state_of({}, {}, free=(0, 1, 2, 3, 4, 5, 6, 7, 7)), "free list 2 times"),
        (state_of({"A": [9]}, {"A": 4}), "no such block"),
        (state_of({"A": [1]}, {"A": 9}), "9 tokens"),
    ],
)
def test_broken_books_are_marked_and_said(state, fragment):
    svg = draw_map(state)
    assert any("Wrong: " in line and fragment in " ".join(words(svg)) for line in words(svg))


def test_a_sound_state_has_no_mark():
    svg = draw_map(state_of({"A": [1]}, {"A": 4}))
    assert "Wrong" not in svg and "!" not in labels(svg).values()


def test_the_null_block_says_so():
    state = state_of({"A": [1]}, {"A": 4}, free=(2, 3, 4, 5, 6, 7), null_block=0)
    assert "null" in words(draw_map(state)) and "Wrong" not in draw_map(state)


def test_a_pool_too_large_to_draw_shows_held_blocks_and_says_how_many_are_missing():
    state = state_of({"A": [4999]}, {"A": 3}, 5000, 16)
    svg = draw_map(state)
    assert f"{5000 - MOST_SHOWN:,} more blocks are not drawn." in words(svg)
    assert "4999" in labels(svg).values()


def test_the_title_tells_the_state():
    assert (
        tell_map(state_of({"A": [7, 1]}, {"A": 7})) == "6 of 8 blocks free; A has 7 tokens in blocks [7, 1]."
    )


@pytest.mark.parametrize("entry", [-1, 8, None, "3", 2.5, True])
def test_what_is_no_block_of_the_pool_is_not_drawn_as_one(entry):
    assert not is_block(entry, 8)
    blocks = read_blocks(State(8, 4, {"A": (entry,)}, {"A": 4}, ()))
    assert all(not contents.holders for contents in blocks.values())


def test_blocks_never_overlap_and_stay_in_the_figure():
    for num_blocks in (1, 2, 7, 8, 9, 16, 17, 64, 256):
        for block_size in (1, 2, 4, 12, 16, 64, 300):
            layout = PoolLayout(num_blocks, block_size, 10, lanes=True)
            boxes = [layout.corner(b) for b in layout.shown]
            assert len(set(boxes)) == len(boxes)
            assert layout.right <= 960 - 12 + 0.1, (num_blocks, block_size)
            last = layout.slot(0, block_size - 1)[0] + layout.slot_width
            assert last <= layout.corner(0)[0] + layout.block_width
