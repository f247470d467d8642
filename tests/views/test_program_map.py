import pytest

from kvlab.views import ProgramMap
from kvlab.views.program_map_drawing import draw_program_map
from kvlab.views.program_map_steps import Launch, tell_program

from .reading import count_elements, labels, parse, starts

TABLES = {"A": [7, 1, 3], "B": [5], "C": [0, 2, 6, 8, 4]}
LENGTHS = {"A": 11, "B": 3, "C": 18}
LAUNCH = Launch(TABLES, LENGTHS, 4, 2, 2, 4)


@pytest.mark.parametrize("tile", [1, 3, 4, 16])
@pytest.mark.parametrize("num_splits", [1, 2, 3, 7])
def test_each_position_of_each_head_is_read_by_one_program(num_splits, tile):
    launch = Launch(TABLES, LENGTHS, 4, 2, num_splits, tile)
    read = [(p.request, p.kv_head, position) for p in launch.programs for position in range(p.begin, p.end)]
    assert len(set(read)) == len(read) == 2 * sum(LENGTHS.values())


def test_a_program_follows_its_table():
    for program in LAUNCH.programs:
        blocks = {TABLES[program.request][t // 4] for t in range(program.begin, program.end)}
        assert set(LAUNCH.blocks_of(program)) == blocks


def test_each_step_is_told():
    assert tell_program(LAUNCH, 0) == (
        "3 sequences × 2 KV heads × 2 splits = 12 programs, 2 with nothing to do. No K or V is read twice."
    )
    assert tell_program(LAUNCH, 10).endswith(
        "Sequence C, KV head 0, split 1: positions 12 to 17, in blocks 8, 4."
    )
    assert tell_program(LAUNCH, 6).endswith("no positions left, it stores zeros and ends.")


def test_only_what_the_program_reads_is_in_full_colour():
    """Program 10 is C's: 6 slots of its green at full strength, 2 blocks and its own cell ringed."""
    svg = draw_program_map(LAUNCH, 10, 10)
    full = [
        place
        for node in parse(svg).iter()
        if node.get("fill") == "#009e73" and node.get("fill-opacity") is None
        for place in node.get("d").split("M")[1:]
    ]
    assert len(full) == 6 + 1
    assert len(starts(svg, stroke="var(--kv-focus)")) == 2 + 1


def test_before_the_first_program_every_token_is_in_full_colour():
    svg = draw_program_map(LAUNCH, 10, 0)
    assert "fill-opacity" not in svg and "var(--kv-focus)" not in svg
    assert sorted(labels(svg).values()).count("10") == 4  # A's and C's token 10, in both heads


def test_another_rule_is_drawn_and_its_mistake_told():
    def everything(length, split, num_splits, tile):
        return 0, length

    figure = ProgramMap(TABLES, LENGTHS, 4, num_splits=2, bounds=everything)
    assert figure.tell(0).endswith("Position 0 of sequence A is read 2 times.")
    short = Launch(TABLES, LENGTHS, 4, 1, 2, 4, lambda length, split, *_: (split * 4, split * 4 + 4))
    assert tell_program(short, 0).endswith("Position 8 of sequence A is read 0 times.")


def test_the_widget_steps_to_the_last_program():
    figure = ProgramMap(TABLES, LENGTHS, 4)
    figure.buttons[3].click()
    assert figure.step == 6 and "Sequence C, KV head 1" in figure.telling.value
    assert "<svg" in figure.static()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"lengths": {"A": 13, "B": 3, "C": 18}}, "'A' needs a length from 0 to 12"),
        ({"lengths": {"A": 11, "B": 3}}, "'C' needs a length from 0 to 20"),
        ({"num_splits": 0}, "num_splits must be at least 1"),
    ],
)
def test_bad_input_gets_a_sentence(changes, says):
    arguments = {"tables": TABLES, "lengths": LENGTHS, "block_size": 4, "num_splits": 1} | changes
    with pytest.raises(ValueError, match=says):
        ProgramMap(**arguments)


def test_a_redraw_is_light():
    tables = {f"r{i}": list(range(i * 4, i * 4 + 4)) for i in range(4)}
    launch = Launch(tables, dict.fromkeys(tables, 15), 4, 2, 2, 4)
    for step in range(len(launch.programs) + 1):
        svg = draw_program_map(launch, 16, step)
        assert len(svg.encode()) <= 25_000 and count_elements(svg) <= 100
