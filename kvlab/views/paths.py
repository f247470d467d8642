"""Path data, the d of an SVG path, of the few shapes that the figures are made of."""

from functools import lru_cache


@lru_cache(maxsize=8192)  # a figure repeats few coordinates very often
def num(value: float) -> str:
    """A coordinate in as few characters as it takes, to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:g}"  # + 0.0 turns -0 into 0


def rect(x: float, y: float, width: float, height: float, radius: float = 0) -> str:
    """Path data of a rectangle, rounded where radius > 0."""
    return f"M{num(x + max(radius, 0))} {num(y)}{_outline(width, height, radius)}"


@lru_cache(maxsize=1024)
def _outline(width: float, height: float, radius: float) -> str:
    """A rectangle's path after its first point."""
    if radius <= 0:
        return f"h{num(width)}v{num(height)}h{num(-width)}z"
    r = num(radius)
    across, down = num(width - 2 * radius), num(height - 2 * radius)
    back, up = num(2 * radius - width), num(2 * radius - height)
    return f"h{across}q{r} 0 {r} {r}v{down}q0 {r}-{r} {r}h{back}q-{r} 0-{r}-{r}v{up}q0-{r} {r}-{r}z"


def corner(x: float, y: float, size: float, radius: float) -> str:
    """Path data of the lower right half of a rounded square: the second colour of a shared slot."""
    r = num(radius)
    side = num(size - radius - 2)
    return f"M{num(x + size)} {num(y + 2)}v{side}q0 {r}-{r} {r}h-{side}z"


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
            out.append(
                f"Q{num(px)} {num(py)} {num(px + bend * _sign(nx - px))} {num(py + bend * _sign(ny - py))}"
            )
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
