"""What the prefix cache's figure records of a script: hits, evictions, and learners' mistakes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab import BlockManager, toy_hash
from kvlab.views.prefix_rows import compare
from kvlab.views.prefix_telling import short_hash, sum_up

from .prefix_run import HashesOnlyItsOwnTokens, Learner, LeavesNothingToCompute, drawn, run
from .reading import parse
from .reading import words as texts


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
