"""Draw whose blocks are where in one State."""

from collections.abc import Mapping

from kvlab.state import State, violations
from kvlab.views.contents import is_block, read_blocks, request_ids
from kvlab.views.legend import legend
from kvlab.views.palette import paints
from kvlab.views.pool_drawing import draw_pool
from kvlab.views.pool_layout import MARGIN, PoolLayout
from kvlab.views.sentences import draw_sentence
from kvlab.views.svg import Canvas
from kvlab.views.theme import FOCUS


def tell_map(state: State) -> str:
    """How many blocks are free, and each request's table and length."""
    parts = [f"{len(state.free)} of {state.num_blocks} blocks free"]
    for rid, table in state.tables.items():
        parts.append(f"{rid} has {state.lengths[rid]} tokens in blocks {list(table)}")
    return "; ".join(parts) + "."


def draw_map(
    state: State,
    *,
    cached: Mapping[int, int] | None = None,
    uid: str | None = None,
    standalone: bool = False,
) -> str:
    """The SVG of a state; what breaks a rule is marked and said."""
    broken = violations(state)
    wrong = {violation.block for violation in broken}
    blocks = read_blocks(state)
    held = [b for table in state.tables.values() for b in table if is_block(b, state.num_blocks)]
    pool = PoolLayout(state.num_blocks, state.block_size, 0, must_show=held)
    legend_y = pool.bottom + (42 if pool.hidden else 22)
    canvas = Canvas(max(420, pool.right + MARGIN), legend_y + 8)
    draw_pool(canvas, pool, blocks, paints(request_ids([state])), wrong=wrong, cached=cached)
    shared = any(len(contents.holders) > 1 for contents in blocks.values())
    legend(
        canvas, legend_y, block_size=state.block_size, shared=shared, cached=bool(cached), wrong=bool(wrong)
    )
    for violation in broken[:3]:
        draw_sentence(canvas, f"Wrong: {violation.sentence}.", FOCUS, 700)
    return canvas.svg(tell_map(state), uid=uid, standalone=standalone)
