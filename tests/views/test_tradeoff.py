import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.views import BlockSizeTradeoff
from kvlab.views.svg import Canvas
from kvlab.views.tradeoff_drawing import choice, draw_tradeoff, size_rows, tell_choice

from .reading import count_elements, parse, starts, words

FOCUS = "var(--kv-focus)"


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=30), st.floats(0, 1))
def test_rows_equal_a_count_of_blocks(lengths, most):
    rows = size_rows(lengths)
    for row in rows:
        blocks = sum(len(range(0, length, row.block_size)) for length in lengths)
        empty = blocks * row.block_size - sum(lengths)
        assert row.entries == blocks and row.bytes == 4 * blocks
        assert row.waste == pytest.approx(empty / (blocks * row.block_size))
    chosen = choice(rows, most)
    allowed = [row.block_size for row in rows if row.waste <= most]
    assert chosen.block_size == max(allowed)


def test_the_figures_of_an_8k_request():
    # measured on a real engine: an 8k table of 2 KB at B = 16, twice that at B = 8; 100 tokens waste 12
    rows = {row.block_size: row for row in size_rows([8192])}
    assert (rows[16].entries, rows[16].bytes, rows[8].entries) == (512, 2048, 1024)
    assert {row.block_size: row for row in size_rows([100])}[16].waste == pytest.approx(12 / 112)


def test_the_choice_is_ringed_and_told():
    rows = size_rows([120, 480, 90, 2100, 760, 310])
    svg = draw_tradeoff(rows, 0.05, 6)
    ((_, y, _),) = starts(svg, stroke=FOCUS)
    assert y == 58 + 6 * 28 - 4 and rows[6].block_size == 64
    said = "Blocks of 64: 2.7% of what the 6 requests hold is empty; blocks of 128 would leave 5.8% empty."
    assert said in words(svg) and tell_choice(rows, 0.05, 6) == said


def test_no_size_is_good_enough():
    rows = size_rows([3], sizes=(2, 4))
    assert tell_choice(rows, 0.1, 1) == "No block size wastes at most 10.0%."
    assert not starts(draw_tradeoff(rows, 0.1, 1), stroke=FOCUS)


@pytest.mark.parametrize("lengths", [[1], [8192, 100] * 400, [10**9] * 3])
def test_figures_weigh_little_and_texts_stay_inside(lengths, monkeypatch):
    overflowing, write = [], Canvas.svg

    def checked(self, *args, **kwargs):
        overflowing.extend(text for text in self.texts if text[0] < 0 or text[1] > self.width + 1)
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Canvas, "svg", checked)
    svg = draw_tradeoff(size_rows(lengths), 0.05, len(lengths), problem="Words. " * 40)
    assert len(svg.encode()) <= 25_000 and count_elements(svg) <= 100
    assert parse(svg).get("role") == "img" and svg.count("<title>") == 1 and not overflowing


def test_typing_redraws_and_errors_are_sentences_in_the_figure():
    figure = BlockSizeTradeoff([100, 200])
    figure.typed.value = "8192 100,8"
    assert figure.rows[0].entries == 8192 + 100 + 8
    figure.typed.value = "12, cats"
    assert "'cats' was given. The picture still shows the last answer." in " ".join(
        words(figure.picture.value)
    )
    figure.typed.value = ""
    assert "No lengths" in " ".join(words(figure.picture.value))
    figure.accepted.value = "many"
    assert "is not a share" in " ".join(words(figure.picture.value))
    figure.accepted.value = "10%"
    assert "is not" not in " ".join(words(figure.picture.value))


def test_all_lengths_count_while_only_the_accepted_waste_changes():
    figure = BlockSizeTradeoff([100] * 900)
    figure.accepted.value = "0.2"
    assert figure.rows[0].entries == 90_000


def test_what_cannot_be_drawn_is_a_sentence():
    for arguments, fragment in (([], "No lengths"), ([0], "at least 1 token"), ([5], "share from 0 to 1")):
        with pytest.raises(ValueError, match=fragment):
            BlockSizeTradeoff(arguments, 2 if arguments == [5] else 0.1)


def test_the_figure_brings_a_picture():
    figure = BlockSizeTradeoff()
    assert figure._repr_mimebundle_()["image/svg+xml"] == figure.static()
    assert figure.words() == tell_choice(figure.rows, 0.05, 6)
