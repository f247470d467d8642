from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab import BlockManager, parse_script, toy_hash
from kvlab.checkpoint import ModelNotFound, find_model
from kvlab.views import PrefixCacheStepper, prompt_tokens
from kvlab.views.prefix_drawing import draw_prefix, tell_prefix
from kvlab.views.prefix_layout import PrefixLayout
from kvlab.views.prefix_rows import compare
from kvlab.views.prefix_steps import record_prefixes
from kvlab.views.prefix_telling import short_hash, sum_up
from kvlab.views.prompt_tokens import Token

from .reading import count_elements, labels, parse, starts
from .reading import words as texts

FOCUS = "var(--kv-focus)"
PROMPTS = {
    "A": "you are a helpful assistant and what is a cache",
    "B": "you are a helpful assistant and what is a block",
    "C": "write me a long poem about the sea the wind and a boat",
}
SCRIPT = "append A; release A; append B; release B; append C; release C; append A"


def run(prompts=PROMPTS, script=SCRIPT, manager=None):
    tokens = {
        rid: prompt_tokens.words(p if isinstance(p, str) else prompt_tokens.spelled(p))
        for rid, p in prompts.items()
    }
    manager = manager or BlockManager(5, 4, prefix_caching=True)
    return record_prefixes(tokens, parse_script(script), manager)


def drawn(frames):
    layout = PrefixLayout(frames)
    return layout, [draw_prefix(layout, frames, step) for step in range(len(frames))]


class Learner:
    """A small cache that a learner could write: it keeps no object that the figure knows."""

    num_blocks, block_size = 6, 4

    def __init__(self):
        self.free, self.tables, self.lengths, self.known = deque(range(6)), {}, {}, {}

    def append(self, request_id, tokens):
        table = self.tables.setdefault(request_id, [])
        self.lengths[request_id] = self.lengths.get(request_id, 0) + len(tokens)
        if not table:
            for end in range(4, self.most(len(tokens)) + 1, 4):
                block = self.known.get(self.key(tokens, end))
                if block is None:
                    break
                if block in self.free:
                    self.free.remove(block)
                table.append(block)
        while len(table) * 4 < self.lengths[request_id]:
            block = self.free.popleft()
            self.known = {key: b for key, b in self.known.items() if b != block}
            table.append(block)
        for end in range(4, len(tokens) + 1, 4):
            self.known.setdefault(self.key(tokens, end), table[end // 4 - 1])

    def most(self, count):
        return count - 1

    def key(self, tokens, end):
        return tuple(tokens[:end])

    def release(self, request_id):
        held = {b for rid, table in self.tables.items() if rid != request_id for b in table}
        self.free += [b for b in reversed(self.tables.pop(request_id)) if b not in held]
        del self.lengths[request_id]

    def fork(self, parent, child):
        raise NotImplementedError

    def block_table(self, request_id):
        return list(self.tables[request_id])

    def length(self, request_id):
        return self.lengths[request_id]

    def free_order(self):
        return list(self.free)


class HashesOnlyItsOwnTokens(Learner):
    def key(self, tokens, end):
        return tuple(tokens[end - 4 : end])


class LeavesNothingToCompute(Learner):
    def most(self, count):
        return count


# -- what happened ------------------------------------------------------------------------------------------


def test_request_two_hits_what_request_one_left():
    frames = run()
    assert frames[3].found == {"B": 8} and frames[3].touched == (0, 1)
    assert frames[3].telling == (
        "B arrives with 10 tokens: 8 found in blocks 0, 1; 2 left to compute, in block 2."
    )
    assert frames[3].asked_and_found == (20, 8)


def test_an_eviction_is_told_and_shortens_the_next_hit():
    frames = run()
    assert dict(frames[5].evicted) == {1: frames[2].contents[1]}
    assert f"Evicted: block 1 loses {short_hash(frames[2].contents[1])}." in frames[5].telling
    assert frames[7].found == {"A": 4}


def test_freed_blocks_keep_their_content_in_the_queue():
    frames = run()
    assert frames[2].state.free[-2:] == (1, 0) and set(frames[2].contents) == {0, 1}
    assert sum_up(frames[2]).endswith("2 still hold content that can be found: free is not empty.")
    assert sum_up(frames[0]) == "5 blocks are free; none of them holds anything that can be found."
    assert "blocks 1, 0 join the tail, last one first, and keep their content" in frames[2].telling


def test_the_engines_queue_after_a_request_of_55_tokens():
    manager = BlockManager(11, 16, prefix_caching=True, null_block=True)
    frames = run({"A": range(55)}, "append A; release A", manager)
    assert frames[-1].state.free == (4, 5, 6, 7, 8, 9, 10, 3, 2, 1)
    assert set(frames[-1].contents) == {1, 2, 3}


@pytest.mark.parametrize(("length", "found"), [(16, 0), (17, 16), (32, 16), (33, 32), (48, 32), (49, 48)])
def test_hit_lengths_of_the_engine(length, found):
    manager = BlockManager(20, 16, prefix_caching=True)
    frames = run({"A": range(64), "B": range(length)}, "append A; append B", manager)
    assert frames[2].found["B"] == found
    assert ("one token must be computed" in frames[2].telling) == (length % 16 == 0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=8, max_size=24),
    st.integers(0, 23),
    st.sampled_from([1, 2, 3, 4]),
)
def test_one_new_token_changes_its_blocks_hash_and_all_later_ones(ids, place, size):
    place %= len(ids)
    changed = [*ids[:place], ids[place] + 10, *ids[place + 1 :]]
    frames = run({"A": ids, "B": changed}, "append A", BlockManager(40, size, prefix_caching=True))
    for column in range(len(ids) // size):
        words = compare(frames[0], ["A"], "B", column)
        if column < place // size:
            assert words == "= A"
        else:
            assert words == ("≠ A" if column == place // size else "≠ A, though same tokens")


def test_a_collision_of_the_toy_hash_is_named():
    prompts = {"A": [1, 2], "B": [2, 1]}
    manager = BlockManager(4, 2, prefix_caching=True, block_hash=toy_hash)
    frames = run(prompts, "append A; append B", manager)
    assert compare(frames[0], ["A"], "B", 0) == "= A by chance: a collision"
    assert frames[2].found["B"] == 0 and frames[2].error is None


def test_generated_tokens_fill_blocks_that_can_be_found():
    frames = run({"A": [1, 2, 3]}, "append A; append A 2; release A", BlockManager(4, 4, prefix_caching=True))
    assert len(frames[2].chains["A"]) == 1 and set(frames[3].contents) == {0}


def test_a_refusal_is_told_and_the_script_goes_on():
    frames = run(script="append C; append A; release C", manager=BlockManager(5, 4, prefix_caching=True))
    assert "A is refused" in frames[2].telling and frames[2].error is None
    assert len(frames) == 4 and "A" not in frames[3].state.tables


def test_a_learners_cache_is_read_from_its_tables():
    frames = run(manager=Learner())
    assert frames[-1].error is None
    assert frames[3].found == {"B": 8} and frames[3].touched == (0, 1)


def test_without_prefix_caching_nothing_is_known():
    frames = run(manager=BlockManager(8, 4))
    assert not any(frame.contents for frame in frames) and not frames[3].touched


def test_a_hit_on_other_content_is_caught():
    prompts = {"A": [1, 2, 3, 4, 5, 6, 7, 8], "B": [9, 9, 9, 9, 5, 6, 7, 8, 1], "C": [5, 6, 7, 8, 1]}

    class Says(HashesOnlyItsOwnTokens):
        def append(self, request_id, tokens):
            super().append(request_id, tokens)
            return type("Growth", (), {"cached": 4 if request_id == "C" else 0})

    frames = run(prompts, "append A; release A; append C; append A", Says())
    assert (
        "C takes block 1 as a hit for its tokens 0 to 3, but block 1 holds the KV of other"
        in frames[-1].error
    )
    _, svgs = drawn(frames)
    assert f"Wrong: {frames[-1].error}" in " ".join(texts(svgs[-1]))


def test_a_prompt_found_whole_is_caught():
    frames = run({"A": range(8), "B": range(8)}, "append A; append B", LeavesNothingToCompute())
    assert "none is left to compute" in frames[-1].error


def test_what_a_learners_cache_raises_ends_the_run_with_its_sentence():
    class Raises(Learner):
        def append(self, request_id, tokens):
            raise KeyError("no <such> block")

    frames = run(manager=Raises())
    assert len(frames) == 2 and frames[1].error == "KeyError: no <such> block"
    _, svgs = drawn(frames)
    assert "no <such> block" in parse(svgs[1]).findtext("{http://www.w3.org/2000/svg}title")


# -- the drawing --------------------------------------------------------------------------------------------


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


# -- tokens -------------------------------------------------------------------------------------------------


def test_one_token_a_word_and_numbers_are_their_own_ids():
    tokens = prompt_tokens.words("7 cats and 7 dogs")
    assert [token.text for token in tokens] == ["7", "cats", "and", "7", "dogs"]
    assert tokens[0] == tokens[3] == Token(7, "7") and len({token.id for token in tokens}) == 4
    assert [token.id for token in prompt_tokens.words(prompt_tokens.spelled([3, 1, 2]))] == [3, 1, 2]


def test_without_the_model_there_are_no_model_tokens(monkeypatch, tmp_path):
    monkeypatch.setenv("KVLAB_MODEL", str(tmp_path / "missing.gguf"))
    prompt_tokens.smollm2.cache_clear()
    try:
        assert prompt_tokens.smollm2() is None
    finally:
        prompt_tokens.smollm2.cache_clear()


def test_the_models_tokens_spell_the_text():
    try:
        find_model()
    except ModelNotFound:
        pytest.skip("the model is not installed")
    tokenize = prompt_tokens.smollm2()
    assert "".join(token.text for token in tokenize("What is a KV cache?")) == "What is a KV cache?"


# -- the widget ---------------------------------------------------------------------------------------------


def figure(**more):
    return PrefixCacheStepper(PROMPTS, tokenize=prompt_tokens.words, **more)


def test_typing_runs_the_script_again():
    stepper = figure(step=3)
    assert stepper.frames[3].found == {"B": 8}
    stepper.typed.value = "now are a helpful assistant and what is a block"
    assert stepper.frames[3].found == {"B": 0} and stepper.step == 3
    assert "≠ A, though same tokens" in texts(stepper.picture.value)


@pytest.mark.parametrize("typed", ["", "   ", "word " * 600])
def test_what_is_no_prompt_is_a_sentence_in_the_figure(typed):
    stepper = figure()
    before = stepper.frames
    stepper.typed.value = typed
    assert stepper.frames is before
    assert "type at" in " ".join(texts(stepper.picture.value))
    stepper.typed.value = PROMPTS["B"]
    assert "type at" not in " ".join(texts(stepper.picture.value))


def test_the_dropdown_chooses_whose_prompt_is_typed():
    stepper = figure()
    stepper.who.value = "A"
    assert stepper.typed.value == PROMPTS["A"]
    stepper.typed.value = "one two three"
    assert stepper.prompts["A"] == "one two three" and stepper.prompts["B"] == PROMPTS["B"]


def test_a_manager_is_copied_and_left_as_it_was():
    manager = BlockManager(5, 4, prefix_caching=True)
    stepper = figure(manager=manager)
    assert stepper.frames[-1].state.tables and manager.request_ids() == []
    assert figure(manager=lambda: BlockManager(5, 4, prefix_caching=True)).static() == stepper.static()


def test_a_run_that_ends_early_still_steps_to_the_end():
    stepper = figure(manager=LeavesNothingToCompute, script="append A; append A 1; release A; append A")
    stepper.go(4)
    assert stepper.step == 4 and "step" in stepper.telling.value


def test_token_ids_are_prompts_too():
    stepper = PrefixCacheStepper({"A": [1, 2, 3, 4, 5]}, script="append A")
    assert "A arrives with 5 tokens" in tell_prefix(stepper.frames, 1)


@pytest.mark.parametrize(
    ("prompts", "script", "fragment"),
    [
        ({}, SCRIPT, "nothing to draw"),
        ({"A": ""}, "append A", "is empty"),
        ({"A": "one"}, "append B", "names B"),
        ({"A": "one"}, "fork A B", "not fork"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(prompts, script, fragment):
    with pytest.raises(ValueError, match=fragment):
        PrefixCacheStepper(prompts, script=script)


def test_the_figure_brings_a_picture():
    stepper = figure(step=2)
    assert stepper._repr_mimebundle_()["image/svg+xml"] == stepper.static()
    assert parse(stepper.picture.value).get("data-step") == "2"
