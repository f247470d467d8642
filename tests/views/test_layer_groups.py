import random

import pytest

from kvlab import parse_script
from kvlab.hybrid_manager import HybridManager
from kvlab.views import LayerGroups
from kvlab.views.group_drawing import GroupScene, draw_groups, oldest_seen
from kvlab.views.group_steps import group_names, record_groups

from .reading import count_elements, labels, parse, starts, words

GROUPS = [("full", 4), ("sliding", 4, 8)]
FOCUS = "var(--kv-focus)"


def run(script, groups=GROUPS, num_blocks=20):
    manager = HybridManager(num_blocks, groups)
    frames = record_groups(parse_script(script), manager)
    scene = GroupScene(frames, manager.groups, num_blocks)
    return scene, frames, [draw_groups(scene, frames, step) for step in range(len(frames))]


def test_a_window_gives_back_what_the_engine_gives_back():
    # vLLM 0.33: W = 8, B = 4, one token a step: the first block goes when 11 tokens are computed, then 15, 19
    _, frames, _ = run("; ".join(["append A"] * 20))
    given = [frame.lengths["A"] - 1 for frame in frames if ("A", 1) in frame.given]
    assert given == [11, 15, 19]
    assert max(sum(block > 0 for block in frame.tables["A"][1]) for frame in frames[1:]) == 3


def test_taken_and_given_back_follow_from_the_free_list():
    rng, script, live = random.Random(5), [], set()
    for _ in range(60):
        name = rng.choice("ABC")
        if name in live and rng.random() < 0.15:
            script.append(f"release {name}")
            live.remove(name)
        else:
            script.append(f"append {name} {rng.randint(1, 9)}")
            live.add(name)
    groups = [("full", 4), ("sliding", 4, 8), ("chunked", 4, 8), ("linear", 16)]
    _, frames, _ = run("; ".join(script), groups, 300)
    free = set(frames[0].free)
    for frame in frames[1:]:
        given = {block for blocks in frame.given.values() for block in blocks}
        taken = {block for blocks in frame.taken.values() for block in blocks}
        free = (free | given) - taken
        assert free == set(frame.free)


def test_a_block_that_goes_and_comes_back_at_once_is_told_as_both():
    _, frames, _ = run("append A 4; append A 4; append A 4", [("sliding", 4, 4)], 4)
    assert frames[3].tables == {"A": ((0, 2, 1),)}
    assert frames[3].given == frames[3].taken == {("A", 0): (1,)}


def test_steps_are_told():
    _, frames, _ = run("append A 8; append A 3; append A; release A")
    assert frames[1].telling == (
        "A appends 8 tokens, length 8: full takes blocks 1, 2; sliding takes blocks 3, 4."
    )
    assert frames[3].telling == "A appends 1 token, length 12: sliding gives back block 3."
    assert frames[4].telling == "A is released: 5 blocks of all groups free again."


def test_a_refusal_is_told_and_an_error_ends_the_run():
    _, frames, _ = run("append A 8; append B 80; append A; release C; append A", num_blocks=8)
    assert "is refused" in frames[2].telling and frames[2].error is None
    assert len(frames) == 5 and frames[-1].error.startswith("KeyError: no request 'C'")
    _, _, svgs = run("release C")
    assert "Wrong: KeyError: no request 'C'" in " ".join(words(svgs[-1]))


def test_every_held_block_of_the_pool_shows_its_requests_colour():
    scene, frames, svgs = run("append A 8; append B 6; append A 9; release B; append C 2")
    for frame, svg in zip(frames, svgs, strict=True):
        for rid, paint in scene.paints.items():
            held = {block for table in frame.tables.get(rid, ()) for block in table if block}
            seen = set()
            for x, y, _ in starts(svg, fill=paint.fill, stroke="var(--kv-edge)"):
                if y >= scene.pool_top:
                    seen.add(round((x - 6 - 12) / 38) + scene.per_row * round((y - scene.pool_top) / 38))
            assert seen == held


def test_holes_are_dashed_and_tokens_behind_the_window_are_faint():
    scene, _, svgs = run("append A 8; append A 3; append A")
    fill = scene.paints["A"].fill
    rows = [
        [part for part in starts(svg, fill=fill, fill_opacity=".3") if part[1] < scene.pool_top]
        for svg in svgs
    ]
    assert [len(row) for row in rows] == [0, 0, 3, 0]
    assert [list(labels(svg).values()).count("–") for svg in svgs] == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("length", "sliding", "chunked"), [(1, 0, 0), (8, 0, 0), (9, 1, 8), (16, 8, 8), (17, 9, 16)]
)
def test_the_first_token_that_the_newest_one_sees(length, sliding, chunked):
    kinds = HybridManager(9, [("full", 4), ("sliding", 4, 8), ("chunked", 4, 8)]).groups
    assert [oldest_seen(length, kind) for kind in kinds] == [0, sliding, chunked]


def test_groups_of_one_kind_are_numbered():
    manager = HybridManager(9, [("full", 4), ("sliding", 4, 8), ("sliding", 4, 8)])
    assert group_names(manager.groups) == ["full", "sliding 1", "sliding 2"]


def test_given_back_blocks_are_marked_in_the_pool():
    scene, frames, svgs = run("append A 8; append A 3; append A")
    dashed = starts(svgs[3], stroke=FOCUS, stroke_dasharray="4 3")
    ((x, y, _),) = [part for part in dashed if part[1] < scene.legend_y - 20]
    (block,) = frames[3].given["A", 1]
    assert x == pytest.approx(12 + block * 38 - 2 + 8, abs=0.2)
    assert y == pytest.approx(scene.pool_top - 2, abs=0.2)


@pytest.mark.parametrize("block_size", [1, 4, 8, 16, 528])
@pytest.mark.parametrize("num_blocks", [12, 64, 2000])
def test_frames_weigh_little_and_texts_stay_inside(block_size, num_blocks, monkeypatch):
    from kvlab.views.svg import Canvas

    overflowing, write = [], Canvas.svg

    def checked(self, *args, **kwargs):
        overflowing.extend(text for text in self.texts if text[0] < 0 or text[1] > self.width + 1)
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Canvas, "svg", checked)
    window = 2 * block_size
    groups = [("full", block_size), *[("sliding", block_size, window)] * 2, ("linear", 16)]
    names = ("A", "B", "third", "D") * 6
    script = "; ".join(f"append {name} {block_size * 3 + 1}" for name in names)
    for svg in run(script, groups, num_blocks)[2]:
        assert len(svg.encode()) <= 25_000 and count_elements(svg) <= 100
        assert parse(svg).get("role") == "img" and svg.count("<title>") == 1
    assert not overflowing


def test_the_widget_steps_and_refuses_what_it_cannot_draw():
    figure = LayerGroups("append A 8; append A 4", step=2)
    assert parse(figure.picture.value).get("data-step") == "2"
    assert figure._repr_mimebundle_()["image/svg+xml"] == figure.static()
    with pytest.raises(ValueError, match="not fork"):
        LayerGroups("append A; fork A B")
    with pytest.raises(ValueError, match="give a script"):
        LayerGroups("")
