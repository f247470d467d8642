"""Draw how the indices of a cache tensor [L, N, B, H, D] add up to one address."""

from kvlab.views.address import Tensor
from kvlab.views.palette import Paint
from kvlab.views.paths import num, rect
from kvlab.views.pool_layout import MARGIN
from kvlab.views.svg import Canvas
from kvlab.views.theme import FOCUS, LINE, MUTED

HEIGHT = 150

_ROW = 21
_STRIP_X, _STRIP_WIDTH = MARGIN + 104, 240
_INDEX_X = _STRIP_X + _STRIP_WIDTH + 46
_STRIDE_X = _INDEX_X + 92
_PRODUCT_X = _STRIDE_X + 108


def draw_tensor(
    canvas: Canvas, tensor: Tensor, index: tuple[int, int, int, int], paint: Paint, top: float
) -> None:
    """One row a dimension: where the index lies, and index × stride; the sum is the address.

    index: layer, block, slot, head.
    """
    shape = ", ".join(f"{size}" for size in tensor.shape)
    head = f"address in a cache tensor [L, N, B, H, D] = [{shape}], counted in elements"
    canvas.text(MARGIN, top + 14, head, 11, fill=MUTED)
    names = ("layer", "block", "slot", "KV head")
    y = top + 24
    for name, i, size, stride in zip(names, index, tensor.shape, tensor.strides, strict=False):
        canvas.text(MARGIN, y + 13, f"{name} {i}", 11.5, weight=600)
        canvas.text(_STRIP_X - 10, y + 13, f"of {size}", 10.5, fill=MUTED, anchor="end")
        _draw_strip(canvas, y, i, size, paint)
        canvas.text(_INDEX_X, y + 13, f"{i}", 11.5, anchor="end")
        canvas.digits(_INDEX_X + 14, y + 13, "×", 11.5, weight=400)
        canvas.text(_STRIDE_X, y + 13, f"{stride:,}", 11.5, anchor="end")
        canvas.digits(_STRIDE_X + 16, y + 13, "=", 11.5, weight=400)
        canvas.text(_PRODUCT_X, y + 13, f"{i * stride:,}", 11.5, anchor="end")
        y += _ROW
    canvas.path(f"M{num(_INDEX_X - 20)} {num(y)}H{num(_PRODUCT_X)}", stroke=LINE, fill="none")
    element = tensor.element(*index)
    canvas.text(_PRODUCT_X, y + 17, f"element {element:,}", 12.5, weight=700, anchor="end")
    span = f"{tensor.head_dim} numbers lie there: {element:,} to {element + tensor.head_dim - 1:,}"
    _, block, slot, _ = index
    number = f"slot number {block} × {tensor.block_size} + {slot} = {block * tensor.block_size + slot}"
    canvas.text(MARGIN, y + 17, number, 11.5, weight=600)
    canvas.text(_PRODUCT_X, y + 33, span, 10.5, fill=MUTED, anchor="end")


def _draw_strip(canvas: Canvas, y: float, index: int, size: int, paint: Paint) -> None:
    """The dimension as a strip of its indices, the chosen one filled; a long one as a bar."""
    step = min(26, _STRIP_WIDTH / size)
    height = 14
    if step >= 5:
        for i in range(size):
            if i != index:
                canvas.path(
                    rect(_STRIP_X + i * step + 0.5, y + 2.5, step - 3, height, 2), fill="none", stroke=LINE
                )
    else:
        canvas.path(rect(_STRIP_X + 0.5, y + 2.5, _STRIP_WIDTH - 1, height, 2), fill="none", stroke=LINE)
    if 0 <= index < size:
        box = rect(_STRIP_X + index * step + 0.5, y + 2.5, max(3, step - 3), height, 2)
        canvas.path(box, 2, fill=paint.fill, stroke=FOCUS, stroke_width=1.8)
