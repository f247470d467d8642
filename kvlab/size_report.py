"""The sizes of one model in one budget, as plain data and as a readable table."""

from kvlab.budget import MemoryAccount, request_problem, usable_blocks
from kvlab.sizing import ModelShape
from kvlab.units import format_bytes
from kvlab.waste import fragmentation_table

_LENGTHS = (100, 200, 512, 1000, 2048, 4096, 8192, 32768)


def size_report(
    shape: ModelShape,
    available: int,
    *,
    block_size: int = 16,
    max_len: int,
    kv_dtype: str | None = None,
    in_flight: int = 2048,
    rounded: tuple[int, int] | None = None,
    account: MemoryAccount | None = None,
) -> dict:
    """Everything that follows from a shape (as one GPU holds it) and `available` bytes, ready for JSON.

    `rounded`: the bytes that the budget may stand for, when it was written with decimals; then the report
    says which block counts are possible. Raises ValueError when the pool could serve nothing.
    """
    plan = shape.plan(block_size, kv_dtype)
    blocks = plan.num_blocks(available)
    usable = usable_blocks(blocks)
    needed = plan.blocks_per_request(max_len, in_flight)
    lengths = sorted({length for length in _LENGTHS if length < max_len} | {max_len})
    rows = fragmentation_table(lengths, plan.block_size, shape.kv_bytes_per_token(kv_dtype))
    return {
        "model": shape.name,
        "kv_dtype": shape.dtype if kv_dtype in (None, "auto") else kv_dtype,
        "layers": {kind: sum(layer.kind == kind for layer in shape.layers) for kind in _kinds(shape)},
        "num_kv_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "block_size": plan.block_size,
        "block_bytes": plan.block_bytes,
        "available_bytes": available,
        "num_gpu_blocks": blocks,
        "num_gpu_blocks_if_rounded": rounded and [plan.num_blocks(edge) for edge in rounded],
        "usable_blocks": usable,
        "remainder_bytes": available - blocks * plan.block_bytes,
        "capacity_tokens": plan.logged_tokens(blocks, max_len, in_flight)
        if plan.is_hybrid
        else blocks * plan.block_size,
        "per_token_bytes": shape.kv_bytes_per_token(kv_dtype),
        "kv_bytes_recomputed": blocks * plan.block_bytes,
        "max_len": max_len,
        "blocks_per_request_at_max_len": needed,
        "max_concurrency_at_max_len": plan.concurrency(blocks, max_len, in_flight),
        "problem": _problem(plan, blocks, usable, needed, max_len),
        "groups": [
            {"kind": g.kind, "layers": g.num_layers, "block_size": g.block_size, "page_bytes": g.page_bytes}
            for g in plan.groups
        ],
        "memory": account and account._asdict(),
        "fragmentation": [row._asdict() for row in rows],
    }


def _kinds(shape: ModelShape) -> list[str]:
    return sorted({layer.kind for layer in shape.layers})


def _problem(plan, blocks: int, usable: int, needed: int, max_len: int) -> str | None:
    if not plan.is_hybrid and plan.groups[0].kind == "full":
        return request_problem(max_len, blocks, plan.block_size, max_len)
    if needed > usable:
        return f"A request of {max_len:,} tokens needs {needed:,} blocks, but the pool has {usable:,}."
    return None


def as_text(report: dict) -> str:
    """The report as a table for a terminal."""
    layers = ", ".join(f"{count} {kind}" for kind, count in report["layers"].items())
    rounded = report["num_gpu_blocks_if_rounded"]
    possible = f" ({rounded[0]:,} to {rounded[1]:,}: the budget is rounded)" if rounded else ""
    pairs = [
        (
            "model",
            f"{report['model']}: {layers} layers, {report['num_kv_heads']} KV heads x {report['head_dim']}",
        ),
        ("KV dtype", report["kv_dtype"]),
        ("bytes per token", f"{report['per_token_bytes']:,} B"),
        ("block", f"{report['block_size']} tokens, {report['block_bytes']:,} B"),
        ("budget", f"{report['available_bytes']:,} B ({format_bytes(report['available_bytes'])})"),
        ("blocks", f"{report['num_gpu_blocks']:,}{possible}, {report['usable_blocks']:,} usable"),
        ("KV bytes", f"{report['kv_bytes_recomputed']:,} B, {report['remainder_bytes']:,} B left over"),
        ("capacity", f"{report['capacity_tokens']:,} tokens"),
        (
            f"requests of {report['max_len']:,}",
            f"{report['max_concurrency_at_max_len']:.2f} at once "
            f"({report['num_gpu_blocks']:,} / {report['blocks_per_request_at_max_len']:,} blocks)",
        ),
    ]
    width = max(len(name) for name, _ in pairs)
    lines = [f"{name:<{width}}  {value}" for name, value in pairs]
    if report["problem"]:
        lines.append(f"{'problem':<{width}}  {report['problem']}")
    return "\n".join([*lines, *_memory(report), *_groups(report), "", *_waste(report)])


def _memory(report: dict) -> list[str]:
    account = report["memory"]
    if not account:
        return []
    parts = ", ".join(
        f"{name} {format_bytes(account[name])}" for name in ("weights", "kv", "rest", "outside")
    )
    return ["", f"GPU memory {format_bytes(account['total'])}: {parts}"]


def _groups(report: dict) -> list[str]:
    if len(report["groups"]) == 1:
        return []
    names = [f"{g['layers']} {g['kind']} layers (blocks of {g['block_size']})" for g in report["groups"]]
    return ["", f"{len(names)} layer groups share the pool:", *(f"  {name}" for name in names)]


def _waste(report: dict) -> list[str]:
    head = f"{'tokens':>8} {'blocks':>7} {'empty slots':>12} {'of tokens':>10} {'of slots':>9} {'table':>9}"
    rows = [
        f"{r['tokens']:>8,} {r['blocks']:>7,} {r['wasted_slots']:>12} {r['share_of_tokens']:>10.2%} "
        f"{r['share_of_slots']:>9.2%} {r['table_bytes']:>7,} B"
        for r in report["fragmentation"]
    ]
    return ["Empty slots in the last block, by length:", head, *rows]
