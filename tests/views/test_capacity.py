import pytest

from kvlab.model_shapes import MODELS, named_shape
from kvlab.units import parse_bytes
from kvlab.views import CapacityCalculator
from kvlab.views.capacity_drawing import draw_capacity
from kvlab.views.capacity_sums import Question, work_out

from .reading import count_elements, labels, parse, starts, words

KV = "#009e73"


def lines(capacity):
    return {line.what: line for line in (*capacity.memory, *capacity.chain)}


def test_the_figures_of_the_start_up_log():
    # a log of vLLM 0.26 on an RTX 4090: 6,652 blocks of 16 in what it rounds to 5.68 GiB
    exact = Question(memory="6103236608", utilization="1", weights="0", rest="0")
    capacity = work_out(exact)
    assert (capacity.num_blocks, capacity.blocks_per_request) == (6652, 512)
    found = lines(capacity)
    assert found["a token"].value == "57,344 B" and found["a block"].value == "917,504 B"
    assert found["tokens"].value == "106,432" and found["requests at once"].value == "12.99"
    fp8 = lines(work_out(exact._replace(kv_dtype="fp8")))
    assert fp8["tokens"].value == "212,864" and fp8["requests at once"].value == "25.98"


def test_every_figure_comes_with_its_formula():
    found = lines(work_out(Question()))
    assert found["a token"].formula == "2 × 28 layers × 4 KV heads × 128 × 2 B"
    assert found["a block"].formula == "16 × 57,344 B"
    assert found["KV cache"].formula == "0.9 × 24.00 GiB − 14.19 GiB − 1.73 GiB"
    assert found["blocks a request"].formula == "⌈8,192 / 16⌉"
    svg = draw_capacity(work_out(Question()))
    for line in found.values():
        assert line.value in words(svg) and any(line.formula in text for text in words(svg))


@pytest.mark.parametrize("model", MODELS)
def test_the_token_formula_comes_to_the_tokens_bytes(model):
    shape = named_shape(model)
    formula = lines(work_out(Question(model=model, memory="4TiB", weights="1GiB")))["a token"].formula
    value = 0
    for part in formula.split(";")[0].split(": one latent")[0].split(" + "):
        for word in ("layers", "KV heads", "B"):
            part = part.replace(word, "")
        value += eval(part.replace("×", "*"))
    assert value == shape.kv_bytes_per_token()


def test_the_parts_add_up_to_the_card():
    account = work_out(Question()).account
    assert (
        account.weights + account.rest + account.kv + account.outside == account.total == parse_bytes("24GiB")
    )


def test_the_bar_shows_the_parts_to_scale():
    capacity = work_out(Question())
    bar = [part for part in starts(draw_capacity(capacity), fill=KV) if part[1] == 34]
    (x, _, data) = bar[0]
    account = capacity.account
    assert x == pytest.approx(12 + 936 * (account.weights + account.rest) / account.total, abs=0.2)
    assert f"h{936 * account.kv / account.total - 1:.1f}"[:-1] in data


def test_a_box_for_each_whole_request():
    capacity = work_out(Question())
    svg = draw_capacity(capacity)
    boxes = [part for part in starts(svg, fill=KV) if part[1] == 92]
    assert len(boxes) == int(capacity.requests) == 12
    assert [text for (_, y), text in labels(svg).items() if y == 111] == [str(i) for i in range(1, 13)]
    assert "503 blocks left for shorter ones" in " ".join(words(svg))


def test_hybrid_models_count_their_groups():
    found = lines(work_out(Question(model="gpt-oss-20b", memory="80GB", weights="13GiB")))
    assert found["blocks a request"].formula == "512 full + 137 sliding"
    assert "2 groups share the pool" in found["a block"].formula
    linear = lines(work_out(Question(model="qwen3.5-4b", weights="")))
    assert "24 layers keep a state instead" in linear["a token"].formula
    assert linear["weights"].formula == "4 × 10⁹ parameters × 2 B"


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ({"memory": "24G"}, "can mean"),
        ({"memory": "lots"}, "is not a size"),
        ({"utilization": "1.5"}, "at most 1"),
        ({"max_len": "0"}, "at least 1"),
        ({"weights": "40GiB"}, "Nothing is left for the KV cache"),
        ({"model": "deepseek-v3", "weights": ""}, "does not say how large"),
        ({"memory": "17.7GiB", "block_size": 1024}, "less than one block"),
    ],
)
def test_what_does_not_work_out_is_a_sentence(change, fragment):
    with pytest.raises(ValueError, match=fragment):
        work_out(Question(**change))


def test_a_request_that_can_never_run_is_said():
    svg = draw_capacity(work_out(Question(max_len="200000")))
    assert any("It can never run." in text for text in words(svg))
    assert "only 0.53 of a request" in parse(svg).findtext("{http://www.w3.org/2000/svg}title")


@pytest.mark.parametrize("model", MODELS)
def test_figures_weigh_little_and_texts_stay_inside(model, monkeypatch):
    from kvlab.views.svg import Canvas

    overflowing, write = [], Canvas.svg

    def checked(self, *args, **kwargs):
        overflowing.extend(text for text in self.texts if text[0] < 0 or text[1] > self.width + 1)
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Canvas, "svg", checked)
    for memory in ("24GiB", "1.5TiB"):
        for max_len in ("1", "100", "8192", "131072", "5000000"):
            question = Question(model=model, memory=memory, weights="3GiB", max_len=max_len)
            svg = draw_capacity(work_out(question), problem="Words. " * 40)
            assert len(svg.encode()) <= 25_000 and count_elements(svg) <= 100
            assert parse(svg).get("role") == "img" and svg.count("<title>") == 1
    assert not overflowing


def test_a_field_redraws_the_answer():
    figure = CapacityCalculator()
    figure.fields["kv_dtype"].value = "fp8"
    assert "28,672 B" in words(figure.picture.value)
    figure.fields["block_size"].value = 32
    assert figure.capacity.blocks_per_request == 256


def test_what_cannot_be_read_is_said_and_the_last_answer_stays():
    figure = CapacityCalculator()
    before = figure.capacity
    figure.fields["memory"].value = "24G"
    shown = " ".join(words(figure.picture.value))
    assert "can mean" in shown and "still shows the last answer" in shown
    assert figure.capacity is before
    figure.fields["memory"].value = "24 GB"
    assert "can mean" not in " ".join(words(figure.picture.value))


def test_another_model_forgets_the_old_weights():
    figure = CapacityCalculator()
    figure.fields["model"].value = "llama-3.1-8b"
    assert figure.fields["weights"].value == ""
    assert lines(figure.capacity)["weights"].formula == "8 × 10⁹ parameters × 2 B"


def test_first_values_and_the_picture_without_a_kernel():
    figure = CapacityCalculator("opt-13b", memory="40GB", max_len=2048, block_size=4)
    assert figure.question.weights == "" and figure.capacity.max_len == 2048
    assert figure._repr_mimebundle_()["image/svg+xml"] == figure.static()
    assert figure.words().startswith("opt-13b in 40GB: ")
    with pytest.raises(ValueError, match="is not a size"):
        CapacityCalculator(memory="much")
    with pytest.raises(KeyError, match="table of models"):
        CapacityCalculator("gpt-9")
