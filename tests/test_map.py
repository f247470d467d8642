"""`kvlab/README.md` names every file of the package once, in the words of its own first line."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "kvlab"


def test_the_map_names_every_file_in_its_own_words():
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\) \| (.*) \|$", text, re.MULTILINE)
    assert len(named) == len(dict(named)), "a file is named twice"
    files = {path.stem: path for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    own = {
        stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).splitlines()[0]
        for stem, path in files.items()
    }
    assert dict(named) == own
