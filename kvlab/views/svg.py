"""SVG primitives: a canvas that merges what looks alike into one element.

Drawing a thousand slots as a thousand rectangles makes a redraw slow. The canvas collects path data by its
attributes, so that all slots of one colour become one `<path>`, and all numbers of one style one `<text>`
whose digits each carry their own place.
"""

from collections.abc import Hashable
from zlib import crc32

from kvlab.views.theme import CARD, CSS, FONT, INK

DIGIT_EM = 0.6  # advance of a figure or a monospaced letter, in em, close enough in every common font

_UID = "@uid@"


def escape(text: object) -> str:
    """Text made safe for SVG content and attributes; control characters become a visible box."""
    clean = "".join(c if c >= " " and c != "\x7f" and not "\ud800" <= c <= "\udfff" else "□" for c in str(text))
    return clean.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def num(value: float) -> str:
    """A coordinate in as few characters as it takes, to a tenth of a pixel."""
    return f"{round(value, 1):g}"


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
    for word in text.split():
        word = clip_text(word, width, size, weight)
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, size, weight) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def rect(x: float, y: float, width: float, height: float, radius: float = 0) -> str:
    """Path data of a rectangle, rounded where radius > 0."""
    if radius <= 0:
        return f"M{num(x)} {num(y)}h{num(width)}v{num(height)}h{num(-width)}z"
    r = num(radius)
    across, down = num(width - 2 * radius), num(height - 2 * radius)
    back, up = num(2 * radius - width), num(2 * radius - height)
    return (
        f"M{num(x + radius)} {num(y)}h{across}a{r} {r} 0 0 1 {r} {r}v{down}a{r} {r} 0 0 1-{r} {r}"
        f"h{back}a{r} {r} 0 0 1-{r}-{r}v{up}a{r} {r} 0 0 1 {r}-{r}z"
    )


def corner(x: float, y: float, size: float, radius: float) -> str:
    """Path data of the lower right half of a rounded square: the second colour of a shared slot."""
    r = num(radius)
    side = num(size - radius - 2)
    return (
        f"M{num(x + size)} {num(y + 2)}v{side}a{r} {r} 0 0 1-{r} {r}h-{side}z"
    )


def route(points: list[tuple[float, float]], radius: float = 6) -> str:
    """Path data of a line through points, its corners rounded."""
    points = [p for i, p in enumerate(points) if i == 0 or p != points[i - 1]]
    (x, y), *rest = points
    out = [f"M{num(x)} {num(y)}"]
    for i, (px, py) in enumerate(rest):
        length = abs(px - x) + abs(py - y)
        last = i == len(rest) - 1
        following = 0 if last else abs(rest[i + 1][0] - px) + abs(rest[i + 1][1] - py)
        bend = 0 if last else min(radius, length / 2, following / 2)
        back_x, back_y = px + bend * _sign(x - px), py + bend * _sign(y - py)
        out.append(f"L{num(back_x)} {num(back_y)}")
        if bend:
            nx, ny = rest[i + 1]
            out.append(f"Q{num(px)} {num(py)} {num(px + bend * _sign(nx - px))} {num(py + bend * _sign(ny - py))}")
        x, y = px, py
    return "".join(out)


def arrow_head(x: float, y: float, direction: str, size: float = 5) -> str:
    """Path data of an arrow head whose tip is at x, y and which points "down", "up", "left" or "right"."""
    s, long = size, size * 1.5
    corners = {
        "down": (-s, -long, 2 * s, 0),
        "up": (-s, long, 2 * s, 0),
        "right": (-long, -s, 0, 2 * s),
        "left": (long, -s, 0, 2 * s),
    }[direction]
    dx, dy, ex, ey = (num(c) for c in corners)
    return f"M{num(x)} {num(y)}l{dx} {dy}l{ex} {ey}z"


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


class Canvas:
    """Collects shapes and texts and writes them as one SVG.

    `path` data with equal attributes are merged into one element; so are `digits` of one style. Elements come
    out by layer (low first) and, within a layer, in the order in which they were first drawn.
    """

    def __init__(self, width: float, height: float = 0):
        self.width = width
        self.height = height
        self.texts: list[tuple[float, float, float, str]] = []  # left, right, baseline, text: what tests measure
        self._groups: dict[Hashable, list[str]] = {}
        self._defs: dict[str, str] = {}

    def path(self, data: str, layer: int = 0, **attributes: object) -> None:
        """Add path data; attribute names use _ for -."""
        self._groups.setdefault((layer, "path", tuple(attributes.items())), []).append(data)

    def text(self, x: float, y: float, text: object, size: float = 11, *, fill: str = INK, weight: int = 400,
             anchor: str = "start", layer: int = 5, plate: bool = False) -> float:
        """One text element, hidden from screen readers (the title tells it). Returns its guessed right end.

        plate: cover what is behind the text, such as the line that it names.
        """
        text = str(text)
        width = text_width(text, size, weight)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        self.texts.append((left, left + width, y, text))
        if plate:
            self.path(rect(left - 3, y - size, width + 6, size * 1.3), layer, fill=CARD)
        key = (size, fill, weight, anchor)
        place = f'x="{num(x)}" y="{num(y)}"'
        self._groups[(layer, "text", key, len(self._groups))] = [place, escape(text)]
        return left + width

    def digits(self, x: float, y: float, text: object, size: float = 11, *, fill: str = INK, weight: int = 600,
               anchor: str = "middle", layer: int = 5, mono: bool = False) -> None:
        """A number or a short label, each character placed by itself so that all of one style are one element."""
        text = str(text)
        step = DIGIT_EM * size
        first = x + {"start": step / 2, "middle": -(len(text) - 1) * step / 2, "end": step / 2 - len(text) * step}[anchor]
        self.texts.append((first - step / 2, first + (len(text) - 0.5) * step, y, text))
        group = self._groups.setdefault((layer, "digits", (size, fill, weight, mono)), [])
        group.extend((num(first + i * step), num(y), escape(c)) for i, c in enumerate(text))

    def hatch(self, colour: str) -> str:
        """The paint of a hatched area: reserved but unused."""
        name = f"h{colour.strip('#')}"
        self._defs[name] = (
            f'<pattern id="{_UID}{name}" width="5" height="5" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><path d="M1 0v5" stroke="{colour}" stroke-width="1.7" '
            f'stroke-opacity=".6"/></pattern>'
        )
        return f"url(#{_UID}{name})"

    def svg(self, title: str, *, step: int | None = None, uid: str | None = None, standalone: bool = False) -> str:
        """The finished SVG.

        `title` is the telling for those who cannot see it. `uid` prefixes the ids of patterns; left out, it
        comes from the content, so that equal figures are equal text. `standalone` adds the theme and a page.
        """
        groups = sorted(self._groups.items(), key=lambda item: item[0][0])
        body = "".join(_element(key, parts) for key, parts in groups)
        defs = f"<defs>{''.join(self._defs.values())}</defs>" if self._defs else ""
        page = f'<path d="{rect(0, 0, self.width, self.height, 8)}" fill="{CARD}"/>' if standalone else ""
        style = f"<style>{CSS}</style>" if standalone else ""
        width, height = num(self.width), num(self.height)
        data_step = "" if step is None else f' data-step="{step}"'
        out = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="kvfig" role="img" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" style="max-width:100%;height:auto" '
            f'font-family="{FONT}"{data_step}><title>{escape(title)}</title>{style}{defs}{page}{body}</svg>'
        )
        return out.replace(_UID, f"{uid or f'kv{crc32(out.encode()):08x}'}-")


def _element(key: tuple, parts: list) -> str:
    kind, style = key[1], key[2]
    if kind == "path":
        attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style)
        return f'<path d="{"".join(parts)}"{attributes}/>'
    if kind == "text":
        size, fill, weight, anchor = style
        place, text = parts
        anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
        return (
            f'<text {place} font-size="{num(size)}" font-weight="{weight}" fill="{fill}"{anchored} '
            f'aria-hidden="true" xml:space="preserve">{text}</text>'
        )
    size, fill, weight, mono = style
    xs, ys, characters = zip(*parts, strict=True)
    family = ' font-family="var(--jp-code-font-family,ui-monospace,monospace)"' if mono else ""
    return (
        f'<text x="{" ".join(xs)}" y="{" ".join(ys)}" font-size="{num(size)}" font-weight="{weight}" '
        f'fill="{fill}" text-anchor="middle"{family} aria-hidden="true">{"".join(characters)}</text>'
    )
