"""The canvas of a figure: it merges what looks alike into one SVG element.

Drawing a thousand slots as a thousand rectangles makes a redraw slow. The canvas collects path data by its
attributes, so that all slots of one colour become one `<path>`, and all numbers of one style one `<text>`
whose digits each carry their own place.
"""

from collections.abc import Hashable
from zlib import crc32

from kvlab.views.paths import num, rect
from kvlab.views.text import escape, text_width
from kvlab.views.theme import CARD, CSS, FONT, INK, MONO

DIGIT_EM = 0.6  # advance of a figure or a monospaced letter, in em, close enough in every common font

_UID = "@uid@"


class Canvas:
    """Collects shapes and texts and writes them as one SVG.

    `path` data with equal attributes are merged into one element; so are `digits` of one style. Elements come
    out by layer (low first) and, within a layer, in the order in which they were first drawn.
    """

    def __init__(self, width: float, height: float = 0):
        self.width = width
        self.height = height
        self.texts: list[
            tuple[float, float, float, str]
        ] = []  # left, right, baseline, text: what tests measure
        self._groups: dict[Hashable, list[str]] = {}
        self._defs: dict[str, str] = {}

    def path(self, data: str, layer: int = 0, **attributes: object) -> None:
        """Add path data; attribute names use _ for -."""
        self._groups.setdefault((layer, "path", tuple(attributes.items())), []).append(data)

    def text(
        self,
        x: float,
        y: float,
        text: object,
        size: float = 11,
        *,
        fill: str = INK,
        weight: int = 400,
        anchor: str = "start",
        layer: int = 5,
        plate: bool = False,
    ) -> float:
        """One text element. Returns its guessed right end.

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

    def digits(
        self,
        x: float,
        y: float,
        text: object,
        size: float = 11,
        *,
        fill: str = INK,
        weight: int = 600,
        anchor: str = "middle",
        layer: int = 5,
        mono: bool = False,
    ) -> None:
        """A number or a short label, each character placed by itself: one element for each style."""
        text = str(text)
        if not text:
            return
        step = DIGIT_EM * size
        first = (
            x
            + {"start": step / 2, "middle": -(len(text) - 1) * step / 2, "end": step / 2 - len(text) * step}[
                anchor
            ]
        )
        self.texts.append((first - step / 2, first + (len(text) - 0.5) * step, y, text))
        group = self._groups.setdefault((layer, "digits", (size, fill, weight, mono)), [])
        down = num(y)
        for i, character in enumerate(text):
            group.append((num(first + i * step), down, character))

    def hatch(self, colour: str) -> str:
        """The paint of a hatched area: reserved but unused."""
        name = f"h{colour.strip('#')}"
        self._defs[name] = (
            f'<pattern id="{_UID}{name}" width="5" height="5" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><path d="M1 0v5" stroke="{colour}" stroke-width="1.7" '
            f'stroke-opacity=".6"/></pattern>'
        )
        return f"url(#{_UID}{name})"

    def svg(
        self, title: str, *, step: int | None = None, uid: str | None = None, standalone: bool = False
    ) -> str:
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
            f'<svg xmlns="http://www.w3.org/2000/svg" class="kvfig" role="img" '
            f'viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" style="max-width:100%;height:auto" '
            f'font-family="{FONT}"{data_step}><title>{escape(title)}</title>{style}{defs}'
            f'<g aria-hidden="true">{page}{body}</g></svg>'
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
        look = f'font-size="{num(size)}" font-weight="{weight}" fill="{fill}"{anchored}'
        return f"<text {place} {look}>{text}</text>"
    size, fill, weight, mono = style
    xs, ys, characters = zip(*parts, strict=True)
    family = f' font-family="{MONO}"' if mono else ""
    return (
        f'<text x="{" ".join(xs)}" y="{" ".join(ys)}" font-size="{num(size)}" font-weight="{weight}" '
        f'fill="{fill}" text-anchor="middle"{family}>{escape("".join(characters))}</text>'
    )
