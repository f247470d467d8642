"""The prefix cache's figure: prompts as tokens, and the widget."""

import pytest

from kvlab import BlockManager
from kvlab.checkpoint import ModelNotFound, find_model
from kvlab.views import PrefixCacheStepper, prompt_tokens
from kvlab.views.prefix_drawing import tell_prefix
from kvlab.views.prompt_tokens import Token

from .prefix_run import PROMPTS, SCRIPT, LeavesNothingToCompute
from .reading import parse
from .reading import words as texts

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
