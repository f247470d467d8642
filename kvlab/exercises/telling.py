"""Say one sentence: as a small box in a notebook, as a line of text elsewhere."""

from __future__ import annotations

import html
import sys

MARKS = {"passed": "✓", "failed": "✗", "not attempted": "○", "note": "·"}
_EDGES = {"passed": "#009E73", "failed": "#D55E00", "not attempted": "#8a8f98", "note": "#0072B2"}


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this code (not a terminal, not a test)."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def box(inner: str, state: str) -> str:
    """HTML for a sentence with a coloured edge; its ink is the page's own, right in both themes."""
    return (
        f'<div class="kvlab-{state.replace(" ", "-")}" style="border-left:4px solid {_EDGES[state]};'
        f"padding:.35em .8em;margin:.2em 0;line-height:1.5;max-width:60em;"
        f'font-family:var(--jp-ui-font-family,sans-serif);white-space:pre-wrap">{inner}</div>'
    )


def say(sentence: str, state: str = "note") -> None:
    """Show the sentence, with a mark for its state."""
    mark = "" if state == "note" else f"<b>{MARKS[state]}</b> "
    show(f"{MARKS[state]} {sentence}", box(mark + with_code(sentence), state))


def show(text: str, markup: str) -> None:
    """Display the markup in a notebook; print the text elsewhere."""
    if in_notebook():
        from IPython.display import display

        display({"text/plain": text, "text/html": markup}, raw=True)
    else:
        print(text)


def with_code(sentence: str) -> str:
    """Escaped HTML in which what stands between backticks is set as code."""
    parts = html.escape(sentence, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
