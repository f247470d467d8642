"""The demo as a learner starts it: piped, on a terminal, and with what can go wrong."""

import io

import pytest
from models import small_config, smollm

from kvlab import demo
from kvlab.__main__ import main
from kvlab.checkpoint import GGUF
from kvlab.decoder import Decoder
from kvlab.demo_screen import listed, picture, screen
from kvlab.state import State
from kvlab.weights import Weights


@pytest.fixture
def loaded(model_path, monkeypatch):
    """SmolLM2, loaded once for all tests."""
    model = smollm(model_path)
    monkeypatch.setattr(Decoder, "from_gguf", lambda path: model)


@pytest.fixture
def quick(model_path, monkeypatch):
    """A small random model with SmolLM2's tokenizer, for what does not depend on what is said."""
    weights = Weights.random(small_config(vocab_size=49152, context_length=8192))
    model = Decoder(weights, GGUF.open(model_path))
    monkeypatch.setattr(Decoder, "from_gguf", lambda path: model)


def test_two_prompts_share_a_cache_and_equal_the_contiguous_run(loaded, capsys):
    assert main(["demo", "--tokens", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("A asks: ") and lines[1].startswith("B asks: ")
    assert lines[2] == (
        "step 0: A 'The' table [0, 1, 2]; B 'The' table [3, 4, 5]; free [6, 7, 8, 9]"
    )  # 37 and 36 tokens
    assert lines[6:8] == ["A answers: The sea is a", "B answers: The answer to this"]
    assert lines[8].startswith("8 tokens in 4 steps")
    difference = float(lines[9].split("contiguous run: ")[1].split(" ")[0])
    assert difference < 1e-3
    assert "float32 rounding" in lines[9] and "is the same at every step" in lines[9]


def test_a_finished_request_gives_its_blocks_back(loaded, capsys):
    prompts = ["--prompt", "What is the capital of France? Tell me one fact about it.", "--prompt", "Hi"]
    assert main(["demo", *prompts, "--tokens", "9", "--block-size", "8"]) == 0
    out = capsys.readouterr().out
    assert "A answers: The capital of France is Paris.\n" in out
    assert "step 7: A '' table [0, 1, 2, 3, 4, 5, 11]" in out  # its end token
    last = next(line for line in out.splitlines() if line.startswith("step 8"))
    assert "A" not in last and last.endswith("0, 1, 2, 3, 4, 5, 11]")


def test_a_wrong_paged_run_is_reported(loaded, capsys, monkeypatch):
    """The last block is replaced; the first holds the system prompt, which is the same for both."""
    original = demo.BlockManager.block_table
    monkeypatch.setattr(
        demo.BlockManager, "block_table", lambda self, request_id: [*original(self, request_id)[:-1], 0]
    )
    assert main(["demo", "--tokens", "2"]) == 1
    assert "too much: the paged run is wrong" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--num-blocks", "6", "--tokens", "16"], "The pool is full: 1 block needed, 0 of 6 free"),
        (["--num-blocks", "2"], "Or give more blocks with --num-blocks"),
        (["--block-size", "0"], "block_size must be at least 1"),
        (["--num-blocks", "-1"], "block"),
        (["--tokens", "0"], "max_new_tokens is 0"),
        (["--temperature", "-1"], "temperature is -1"),
        (["--prompt", ""], None),
    ],
)
def test_bad_options_end_in_a_sentence(quick, capsys, arguments, says):
    code = main(["demo", "--tokens", "1", *arguments])
    error = capsys.readouterr().err
    assert "Traceback" not in error
    if says is None:
        assert code == 0
    else:
        assert code == 1 and says in error


def test_without_a_model_the_demo_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setenv("KVLAB_MODEL", "/nowhere/model.gguf")
    assert main(["demo"]) == 1
    assert "KVLAB_MODEL is '/nowhere/model.gguf', which is not a file" in capsys.readouterr().err


def test_sampling_is_repeated_by_its_seed(quick, capsys):
    answers = []
    for seed in ("1", "1", "2"):
        assert main(["demo", "--tokens", "6", "--temperature", "1.5", "--seed", seed]) == 0
        out = capsys.readouterr().out.splitlines()
        answers.append([line for line in out if " answers: " in line])
    assert answers[0] == answers[1] != answers[2]


class Terminal(io.StringIO):
    def isatty(self):
        return True


STATE = State(6, 4, {"A": (0, 3), "B": (1,)}, {"A": 6, "B": 4}, free=(2, 4, 5))
PROMPTS = {"A": "Why?", "B": "How?"}


def test_a_terminal_shows_text_beside_tables_and_the_free_list(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    out = Terminal()
    with screen(PROMPTS, out) as show:
        show([], STATE)
    shown = out.getvalue()
    for text in ("Why?", "How?", "table [0, 3]", "6 tokens, 4 a block", "0 A", "1 B", "free [2, 4, 5]"):
        assert text in shown
    assert "\x1b[" in shown


def test_the_picture_names_holders_in_words_too():
    from rich.console import Console

    console = Console(width=80, record=True, file=io.StringIO())
    console.print(picture(PROMPTS, {"A": "Because [0] of it", "B": ""}, STATE))
    text = console.export_text()
    assert "Because [0] of it" in text
    assert "table [0, 3]" in text and "table [1]" in text
    assert " 3 A " in text and " 1 B " in text and " 2 A" not in text
    console.print(picture(PROMPTS, {"A": "x", "B": ""}, State(6, 4, {}, {}, free=(2, 4, 5, 0, 3, 1))))
    assert console.export_text().count("finished, blocks given back") == 2


def test_long_lists_are_cut():
    assert listed(()) == "[]"
    assert listed(tuple(range(12))) == str(list(range(12)))
    assert listed(tuple(range(13))) == "[13 blocks, the last 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]"


def test_names_go_on_after_z():
    names = demo._names()
    assert [next(names) for _ in range(28)][-3:] == ["Z", "R27", "R28"]
