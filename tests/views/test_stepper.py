import ipywidgets
import pytest

from kvlab import BlockManager, snapshot
from kvlab.contiguous import GrowAndCopy
from kvlab.paged_allocator import PagedAllocator
from kvlab.recorded import recorded
from kvlab.views import (
    AddressTranslation,
    AllocatorStepper,
    BlockMap,
    CapacityCalculator,
    FragmentationStepper,
    LayerGroups,
    OnlineSoftmax,
    PrefixCacheStepper,
    ProgramMap,
    SharingStepper,
    TimingExplorer,
)

from .reading import parse

ALLOWED = {"HBox", "VBox", "HTML", "Button", "IntSlider", "Dropdown", "Text", "ToggleButtons"}


def stepper():
    return AllocatorStepper("append A 3; append A; append A 2; release A", lambda: BlockManager(4, 4))


def shown(figure):
    return int(parse(figure.picture.value).get("data-step"))


def press(figure, name):
    button = next(b for b in figure.buttons if b.description == name)
    button.click()


def widgets(root):
    yield root
    for child in getattr(root, "children", ()):
        yield from widgets(child)


def figures():
    manager = BlockManager(8, 4)
    manager.append("A", 5)
    return [
        stepper(),
        AddressTranslation([7, 1], 4, 7),
        OnlineSoftmax([]),
        BlockMap(snapshot(manager, ["A"])),
        SharingStepper("append A 6; fork A B; append B"),
        PrefixCacheStepper({"A": range(9), "B": range(7)}, script="append A; release A; append B"),
        CapacityCalculator(),
        LayerGroups("append A 9; append A 4"),
        FragmentationStepper("admit A 4; append A 2", [GrowAndCopy(16), PagedAllocator(16, 2)]),
        ProgramMap({"A": [2, 0, 1]}, {"A": 11}, 4),
        TimingExplorer(recorded=recorded(), total=1, run=lambda stop: []),
    ]


def test_buttons_walk_through_all_steps():
    figure = stepper()
    seen = [shown(figure)]
    for name in ("Next", "Next", "Back", "Last", "First"):
        press(figure, name)
        seen.append(shown(figure))
    assert seen == [0, 1, 2, 1, 4, 0]


def test_past_the_ends_nothing_moves_and_the_line_says_so():
    figure = stepper()
    press(figure, "Back")
    assert shown(figure) == 0 and "This is the first step." in figure.telling.value
    press(figure, "Last")
    assert "last step" not in figure.telling.value
    press(figure, "Next")
    assert shown(figure) == 4 and "This is the last step." in figure.telling.value
    press(figure, "Back")
    assert "This is" not in figure.telling.value


def test_buttons_are_never_disabled_and_have_text_names():
    figure = stepper()
    for name in ("Next",) * 6:
        press(figure, name)
        assert not any(button.disabled for button in figure.buttons)
    assert [button.description for button in figure.buttons] == ["First", "Back", "Next", "Last"]


def test_the_slider_and_the_buttons_agree_whatever_comes_first():
    figure = stepper()
    for value in (3, 1, 4, 2):
        figure.slider.value = value
        assert figure.step == shown(figure) == value
    press(figure, "Next")
    assert figure.slider.value == 3


def test_one_move_is_one_redraw():
    figure = stepper()
    values = []
    figure.picture.observe(lambda change: values.append(change["new"]), "value")
    press(figure, "Next")
    figure.slider.value = 3
    assert len(values) == 2


def test_the_line_tells_the_step():
    figure = stepper()
    figure.go(2)
    assert "step 2 of 4  A appends token 3" in figure.telling.value


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: type(figure).__name__)
def test_every_figure_keeps_to_the_widgets_that_work_everywhere(figure):
    kinds = {
        next(b.__name__ for b in type(w).__mro__ if b.__name__ in dir(ipywidgets)) for w in widgets(figure)
    }
    assert kinds <= ALLOWED


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: type(figure).__name__)
def test_every_figure_brings_a_picture_for_pages_without_a_kernel(figure):
    bundle = figure._repr_mimebundle_()
    assert bundle["image/svg+xml"] == figure.static()
    assert bundle["text/plain"] == figure.words()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == figure.model_id
    root = parse(figure.static())
    assert root.get("role") == "img" and "prefers-color-scheme" in figure.static()


def test_hooks_for_tests_and_styles():
    figure = stepper()
    classes = {name for widget in widgets(figure) for name in widget._dom_classes}
    wanted = "stepper picture telling slider first back next last"
    assert {f"kvlab-{name}" for name in wanted.split()} <= classes


def test_two_figures_on_a_page_do_not_share_pattern_ids():
    one, two = stepper(), stepper()
    for figure in (one, two):
        figure.go(1)
    ids = [part.split('"')[0] for f in (one, two) for part in f.picture.value.split('<pattern id="')[1:]]
    assert len(ids) == len(set(ids)) > 1


def test_the_theme_is_not_sent_again_with_every_redraw():
    assert "<style" not in stepper().picture.value


def test_a_block_map_is_redrawn_in_place():
    manager = BlockManager(8, 4)
    figure = BlockMap(snapshot(manager, []))
    manager.append("A", 5)
    figure.show(snapshot(manager, ["A"]))
    assert "A has 5 tokens" in figure.words() and "A has 5 tokens" in figure.picture.value
