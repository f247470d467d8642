"""The README says what is there: commands, notebooks, links, the picture, and its example."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_link_and_picture_is_there():
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert "docs/address-translation.svg" in targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_notebook_is_listed():
    listed = set(re.findall(r"notebooks/(\w+\.ipynb)", README))
    assert listed == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`?make (\w+)`?", README)) - {"is", "rarely"}))
def test_every_make_command_exists(command):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.search(r"^COMMANDS = (.*)$", makefile, re.MULTILINE).group(1).split()
    assert command in commands


def test_the_picture_is_what_the_figure_draws_now():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from draw_readme import PICTURE, draw
    finally:
        sys.path.pop(0)
    assert PICTURE.read_text(encoding="utf-8") == draw(), "run: python tools/draw_readme.py"


def test_the_example_runs_and_gives_what_its_comments_say():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert names["manager"].block_table("A") == [0, 1]
    assert f"# {names['slot']}: copy-on-write" in code
