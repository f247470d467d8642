"""Reads a figure back: the oracle of the drawing tests knows nothing of how the figures are drawn."""

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def parse(svg: str) -> ElementTree.Element:
    """The SVG as a tree; fails where it is not well-formed."""
    return ElementTree.fromstring(svg)


def count_elements(svg: str) -> int:
    """Every element, the svg itself and definitions included."""
    return sum(1 for _ in parse(svg).iter())


def words(svg: str) -> list[str]:
    """The texts that are written in one piece."""
    return [node.text or "" for node in parse(svg).iter(f"{SVG}text")]


def labels(svg: str) -> dict[tuple[int, int], str]:
    """Numbers and labels whose characters are placed one by one, joined: (x of the middle, y) -> text."""
    found: dict[tuple[int, int], str] = {}
    for node in parse(svg).iter(f"{SVG}text"):
        xs, ys = (node.get(name).split() for name in ("x", "y"))
        if len(xs) != len(node.text or ""):
            continue
        step = 0.6 * float(node.get("font-size"))
        run: list[tuple[float, float, str]] = []
        for x, y, character in [*zip(map(float, xs), map(float, ys), node.text, strict=True), (0, 0, "")]:
            if run and not (character and y == run[-1][1] and abs(x - run[-1][0] - step) < 0.3):
                middle = (run[0][0] + run[-1][0]) / 2
                found[round(middle), round(run[0][1])] = "".join(c for _, _, c in run)
                run = []
            run.append((x, y, character))
    return found


def starts(svg: str, **attributes: str) -> list[tuple[float, float, str]]:
    """First point and data of every subpath of the paths with these attributes."""
    found = []
    for node in parse(svg).iter(f"{SVG}path"):
        if all(node.get(name.replace("_", "-")) == value for name, value in attributes.items()):
            for part in re.findall(r"M[^M]+", node.get("d")):
                x, y = re.match(r"M(-?[\d.]+) (-?[\d.]+)", part).groups()
                found.append((float(x), float(y), part))
    return found


def slots_at(layout, x: float, y: float, width: float = 0) -> list[tuple[int, int]]:
    """The slots of the pool that a horizontal stretch from x, y touches."""
    found = []
    for block in layout.shown:
        left, top = layout.corner(block)
        if not (left <= x <= left + layout.block_width and top <= y <= top + layout.block_height):
            continue
        for offset in range(layout.block_size):
            slot_x, slot_y = layout.slot(block, offset)
            inside = slot_x - 0.6 <= x + width and x <= slot_x + layout.slot_width + 0.6
            if inside and slot_y - 0.6 <= y <= slot_y + layout.slot_height + 0.6:
                found.append((block, offset))
    return found


def painted(svg: str, layout, fills) -> dict[tuple[int, int], set[str]]:
    """Which request colours each slot of the pool shows."""
    seen: dict[tuple[int, int], set[str]] = {}
    for fill in fills:
        places = [(x, y, 0.0) for x, y, _ in starts(svg, fill=fill)]
        for x, y, data in starts(svg, stroke=fill):
            line = re.fullmatch(r"M[\d.]+ [\d.]+h([\d.]+)", data)
            places += [(x + 0.7, y, float(line[1]) - 1.4)] if line else []
        for x, y, width in places:
            for slot in slots_at(layout, x, y, width):
                seen.setdefault(slot, set()).add(fill)
    return seen


def ringed(svg: str, layout, focus: str = "var(--kv-focus)") -> set[tuple[int, int]]:
    """The slots inside a ring of the accent colour."""
    out = 2.5 if layout.labelled else 1.5
    radius = 6 if layout.labelled else 3
    found = set()
    for x, y, data in starts(svg, stroke=focus, fill="none", stroke_width="2.5"):
        across = re.match(r"M[\d.]+ [\d.]+h([\d.]+)q", data)
        if across:
            left, width = x - radius + out, float(across[1]) + 2 * radius - 2 * out
            found.update(slots_at(layout, left + 1, y + out + 1, width - 2))
    return found
