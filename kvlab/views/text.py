"""Text in figures: made safe, and measured without a browser so that it fits."""

import re

_UNSEEN = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def escape(text: object) -> str:
    """Text made safe for SVG content and attributes; control characters become a visible box."""
    clean = _UNSEEN.sub("□", str(text))
    return clean.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def text_width(text: str, size: float, weight: int = 400) -> float:
    """A safe guess of a text's width in pixels: a little more than wide fonts need."""
    narrow = sum(c in " .,:;'|!ijlIft()[]" for c in text)
    em = 0.4 * narrow + 0.645 * (len(text) - narrow)
    return em * size * (1.1 if weight >= 600 else 1.0)


def clip_text(text: str, width: float, size: float, weight: int = 400) -> str:
    """The text, or its beginning and an ellipsis where it would be wider than `width` pixels."""
    if text_width(text, size, weight) <= width:
        return text
    while text and text_width(text + "…", size, weight) > width:
        text = text[:-1]
    return text.rstrip(" ,") + "…"


def wrap_text(text: str, width: float, size: float, weight: int = 400) -> list[str]:
    """Break a text at spaces into lines of at most `width` pixels; a longer word is clipped."""
    lines = [""]
    for word in text.split(" "):
        word = clip_text(word, width, size, weight)
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, size, weight) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
