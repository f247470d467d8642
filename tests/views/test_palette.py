import itertools
import subprocess
import sys

import numpy as np
import pytest

from kvlab.views.palette import FILLS, contrast, ink_on, paints
from kvlab.views.theme import CSS, DARK, LIGHT


def test_contrast_agrees_with_known_pairs():
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)
    assert contrast("#0072b2", "#ffffff") == contrast("#fff", "#0072b2")


@pytest.mark.parametrize("fill", FILLS)
def test_ink_can_be_read_on_every_fill(fill):
    assert contrast(fill, ink_on(fill)) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("role", ["ink", "muted", "focus"])
def test_text_can_be_read_in_both_themes(theme, role):
    assert contrast(theme[role], theme["card"]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_boxes_stand_out_in_both_themes(theme):
    assert contrast(theme["strong"], theme["card"]) >= 3


# Machado, Oliveira and Fernandes (2009), full severity, on linear RGB.
_DEFICIENCIES = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}


@pytest.mark.parametrize("matrix", _DEFICIENCIES.values(), ids=_DEFICIENCIES.keys())
def test_fills_stay_apart_for_colour_blind_readers(matrix):
    seen = [_lab(np.clip(np.array(matrix) @ _linear(fill), 0, 1)) for fill in FILLS]
    nearest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert nearest > 8  # 2.3 is just noticeable side by side


def _linear(fill):
    channels = np.array([int(fill[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def _lab(rgb):
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(to_xyz) @ rgb / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_a_letter_has_the_same_colour_in_every_figure():
    assert paints(["A", "C"])["C"] == paints(["C", "x", "B"])["C"]
    assert len({paint.fill for paint in paints("ABCDEFG").values()}) == 7


def test_other_names_take_the_colours_that_are_left():
    given = paints(["one", "A", "two"])
    assert len({paint.fill for paint in given.values()}) == 3


def test_more_requests_than_colours_still_differ_by_label():
    given = paints([f"request {i}" for i in range(30)] + ["r1", 7, ("a", 1)])
    assert len({paint.label for paint in given.values()}) == 33
    assert all(0 < len(paint.label) <= 3 for paint in given.values())
    assert given["r1"].label == "r1" and given[7].label == "7"


def test_theme_follows_the_page_and_the_system():
    for needed in ("--jp-ui-font-color1", "--vscode-editor-foreground", "prefers-color-scheme:dark"):
        assert needed in CSS
    assert CSS.count("{") == CSS.count("}")


def test_pure_functions_import_neither_widgets_nor_torch():
    names = "palette theme text paths svg contents pool_layout pool_drawing tables_drawing allocator_drawing"
    names += (
        " address address_drawing tensor_drawing audit_findings audit_drawing map_drawing softmax_drawing"
    )
    names += " sharing_drawing pointers beam_drawing prefix_drawing prefix_steps prompt_tokens"
    names += " capacity_sums capacity_drawing group_steps group_drawing"
    lines = [f"import kvlab.views.{name}" for name in names.split()]
    lines += ["import sys", "print([m for m in ('ipywidgets', 'torch') if m in sys.modules])"]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
