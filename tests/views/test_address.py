import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab import Slot
from kvlab.views import AddressTranslation
from kvlab.views.address import Tensor, ask, ask_outside, locate
from kvlab.views.pool_layout import PoolLayout

from .reading import labels, parse, ringed, starts, words

TITLE = "{http://www.w3.org/2000/svg}title"


def right(table, block_size, position):
    if not 0 <= position < len(table) * block_size:
        raise IndexError(position)
    return table[position // block_size], position % block_size


def pool_of(figure):
    """The figure's pool; its top is where the figure puts it."""
    from kvlab.views.address_drawing import _POOL

    return PoolLayout(figure._tensor.num_blocks, figure._tensor.block_size, _POOL, must_show=figure._table)


@settings(max_examples=25)
@given(st.permutations(range(6)), st.integers(1, 7))
def test_positions_are_located_by_walking(table, block_size):
    walked = [(entry, block, slot) for entry, block in enumerate(table) for slot in range(block_size)]
    assert [tuple(locate(table, block_size, t)) for t in range(len(walked))] == walked


@settings(max_examples=25)
@given(st.tuples(*[st.integers(1, 6)] * 5), st.data())
def test_elements_and_strides_are_numpys(shape, data):
    tensor = Tensor(*shape)
    index = tuple(data.draw(st.integers(0, size - 1)) for size in shape[:4])
    assert tensor.strides == tuple(s // 8 for s in np.empty(shape, np.float64).strides) or 1 in shape
    assert tensor.element(*index) == np.ravel_multi_index((*index, 0), shape)


@pytest.mark.parametrize("position", range(7))
def test_every_position_rings_its_slot_and_lights_its_entry(position):
    figure = AddressTranslation([7, 1], 4, 7)
    figure.go(position)
    svg, slot = figure.static(), ((7, 1)[position // 4], position % 4)
    assert ringed(svg, pool_of(figure)) == {slot}
    text = " ".join(words(svg))
    assert f"{position} // 4 = {position // 4}" in text and f"{position} % 4 = {position % 4}" in text
    assert f"slot number {slot[0]} × 4 + {slot[1]} = {slot[0] * 4 + slot[1]}" in text
    assert f"element {slot[0] * 64 + slot[1] * 16:,}" in text
    assert parse(svg).get("data-step") == str(position)


def test_layer_and_head_move_the_address():
    figure = AddressTranslation([7, 1], 4, 7, num_layers=3, num_kv_heads=2, head_dim=8, position=6)
    figure.layer.value, figure.head.value = 2, 1
    assert f"element {2 * 512 + 1 * 64 + 2 * 16 + 8:,}" in words(figure.picture.value)


@pytest.mark.parametrize(
    ("translate", "fragment"),
    [
        (right, "block 2, slot 2: right"),
        (lambda t, b, p: Slot(*right(t, b, p)), "block 2, slot 2: right"),
        (lambda t, b, p: np.array(right(t, b, p)), "block 2, slot 2: right"),
        (lambda t, b, p: (t[p % b], p // b), "6 // 4 = 1 picks entry 1"),
        (lambda t, b, p: None, "translate returned None"),
        (lambda t, b, p: 5, "translate returned 5, not (block, slot)"),
        (lambda t, b, p: (1, 2, 3), "translate returned (1, 2, 3), not (block, slot)"),
        (lambda t, b, p: ("2", "2"), "not (block, slot)"),
        (lambda t, b, p: (2.0, 2.0), "not (block, slot)"),
        (lambda t, b: None, "translate raised TypeError"),
        (lambda t, b, p: t[99], "translate raised IndexError"),
        (lambda t, b, p: t.clear(), "translate returned None"),
        (lambda t, b, p: "<b>" * 900, "&lt;b&gt;"),
    ],
)
def test_whatever_translate_does_is_a_sentence(translate, fragment):
    figure = AddressTranslation([5, 2, 9], 4, 10, translate=translate, position=6)
    assert fragment in figure.picture.value and fragment in figure.telling.value
    assert ask(translate, [5, 2, 9], 4, 6).right == ("right" in fragment)


def test_a_value_that_cannot_be_printed_is_still_a_sentence():
    class Stubborn:
        def __repr__(self):
            raise RuntimeError

    figure = AddressTranslation([5, 2, 9], 4, 10, translate=lambda t, b, p: Stubborn())
    assert "a Stubborn that cannot be printed" in figure.picture.value


def test_a_wrong_arrow_goes_where_translate_says_and_the_true_slot_is_outlined_beside_it():
    figure = AddressTranslation([5, 2, 9], 4, 10, translate=lambda t, b, p: (t[0], p % b), position=6)
    layout, svg = pool_of(figure), figure.static()
    assert ringed(svg, layout) == {(5, 2)}
    assert ringed(svg, layout, focus="var(--kv-ink)") == {(2, 2)}
    dashed = starts(svg, stroke="var(--kv-ink)", stroke_dasharray="4 3", stroke_width="2")
    assert len(dashed) == 1  # the table entry that should have been taken


@pytest.mark.parametrize("answer", [(17, 0), (5, 4), (-1, 0), (5, -1)])
def test_a_slot_that_does_not_exist_is_said_and_not_drawn(answer):
    figure = AddressTranslation([5, 2, 9], 4, 10, translate=lambda t, b, p: answer, position=6)
    assert f"block {answer[0]}, slot {answer[1]}" in figure.picture.value
    assert ringed(figure.static(), pool_of(figure)) == set()


def test_a_right_translate_draws_the_plain_figure():
    plain = AddressTranslation([5, 2, 9], 4, 10, position=6)
    mine = AddressTranslation([5, 2, 9], 4, 10, translate=right, position=6)
    assert ringed(mine.static(), pool_of(mine)) == ringed(plain.static(), pool_of(plain)) == {(2, 2)}


@pytest.mark.parametrize(
    ("typed", "fragment"),
    [
        ("7", "reserved, but no token"),
        ("8", "past the end of the table"),
        ("-1", "before the first token"),
        ("seven", "no position: type a whole number from 0 to 6"),
        ("", "no position"),
        ("1.5", "no position"),
        ("9" * 5000, "no position"),
        ("<script>", "no position"),
    ],
)
def test_what_is_no_position_is_said_and_nothing_is_lost(typed, fragment):
    figure = AddressTranslation([7, 1], 4, 7, position=6)
    figure.typed.value = typed
    assert fragment in parse(figure.picture.value).findtext(TITLE) and fragment in figure.telling.value
    assert figure.step == 6 and figure.typed.value == typed
    assert ringed(figure.picture.value, pool_of(figure)) == {(1, 2)}
    assert "<script>" not in figure.picture.value
    figure.buttons[1].click()
    assert figure.step == 5 and "position 5" in figure.telling.value and fragment not in figure.telling.value


def test_typing_a_position_goes_there_and_back_to_the_same_clears_the_complaint():
    figure = AddressTranslation([7, 1], 4, 7)
    figure.typed.value = " 4 "
    assert figure.step == 4 and figure.slider.value == 4
    figure.typed.value = "99"
    figure.typed.value = "4"
    assert figure.step == 4 and "past" not in figure.telling.value


@pytest.mark.parametrize(
    ("translate", "fragment"),
    [
        (right, "raises IndexError, as it should"),
        (lambda t, b, p: (t[p // b % len(t)], 0), "it should raise IndexError"),
        (lambda t, b, p: 1 // 0, "raised ZeroDivisionError"),
    ],
)
def test_translate_is_asked_about_positions_outside_too(translate, fragment):
    figure = AddressTranslation([7, 1], 4, 7, translate=translate)
    figure.typed.value = "8"
    assert fragment in figure.telling.value and fragment in ask_outside(translate, [7, 1], 4, 8)


def test_unused_slots_of_the_last_block_are_hatched():
    svg = AddressTranslation([5, 2, 9], 4, 10).static()
    assert len(starts(svg, stroke="#0072b2", stroke_opacity=".75")) == 2


def test_long_sequences_show_the_tokens_around_the_position():
    figure = AddressTranslation(list(range(40)), 16, 640, num_blocks=64)
    figure.go(333)
    svg = figure.static()
    assert "333" in labels(svg).values() and words(svg).count("…") == 2
    assert ringed(svg, pool_of(figure)) == {(20, 13)}


@pytest.mark.parametrize(
    "arguments",
    [([7, 1], 0, 7), ([7, 1], 4, 9), ([7, 1], 4, 0), ([], 4, 1), ([7, -1], 4, 7)],
)
def test_what_cannot_be_is_refused_with_a_sentence(arguments):
    with pytest.raises(ValueError, match=r"\."):
        AddressTranslation(*arguments)


def test_a_table_past_the_pool_is_refused():
    with pytest.raises(ValueError, match="names block 7, but the pool has blocks 0 to 3"):
        AddressTranslation([7, 1], 4, 7, num_blocks=4)
