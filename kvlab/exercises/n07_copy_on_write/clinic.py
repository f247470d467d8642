"""Two bugs of reference counts side by side: what the sentinel audit sees, and what the books show."""

from __future__ import annotations

from kvlab.block_pool import InvariantError
from kvlab.block_table import BlockCopy
from kvlab.faults import EarlyFree, LostDecrement, Patient
from kvlab.kv_cache import PagedKVCache
from kvlab.sentinel import SentinelWriter
from kvlab.views import SentinelAudit

PATIENTS = {patient.name: patient for patient in (Patient, LostDecrement, EarlyFree)}


def examine(name: str) -> SentinelAudit:
    """Fork, copy, release and reuse on a patient, with sentinels in every slot; prints what the books say.

    A writes 6 tokens in blocks of 4, B forks and writes one, A is released, C writes 8.

    Raises:
        ValueError: there is no such patient.
    """
    if name not in PATIENTS:
        raise ValueError(f"no patient is called {name!r}: choose one of {', '.join(PATIENTS)}.")
    manager = PATIENTS[name](6, 4, reuse="lru")  # a block that was just freed is the next to be used
    cache = PagedKVCache(1, 6, 4, num_kv_heads=1, head_dim=32)  # [L, N, B, Hkv, D]
    writer = SentinelWriter(cache)
    _write(manager, cache, writer, "A", 6)
    manager.fork("A", "B")
    writer.fork("A", "B")
    _write(manager, cache, writer, "B", 1)
    manager.release("A")
    writer.release("A")
    _write(manager, cache, writer, "C", 8)
    mismatches = writer.audit(manager)
    picture = SentinelAudit(cache, manager, mismatches)
    wrong = {(mismatch.block, mismatch.offset) for mismatch in mismatches}
    print(f"{name}: wrong slots {len(wrong)}; {_after_all_have_gone(manager)}")
    return picture


def _after_all_have_gone(manager: Patient) -> str:
    for request_id in ("B", "C"):
        try:
            manager.release(request_id)
        except InvariantError as error:
            return f"releasing {request_id} fails: {error}"
    free = manager.free_order()
    return f"free after everybody has gone: {len(free)} of {manager.num_blocks} blocks"


def _write(
    manager: Patient, cache: PagedKVCache, writer: SentinelWriter, request_id: str, count: int
) -> None:
    for _ in range(count):
        slot = manager.append_slot(request_id)
        if slot.copied_from is not None:
            cache.copy([BlockCopy(slot.copied_from, slot.block, slot.offset)])
        writer.write(request_id, manager.length(request_id) - 1, slot)
