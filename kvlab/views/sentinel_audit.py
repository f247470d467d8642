"""A sentinel audit, wrong slot by wrong slot: the widget."""

from collections.abc import Hashable, Sequence
from typing import Any

from kvlab.state import snapshot
from kvlab.views.audit_drawing import AuditView, draw_audit, tell_audit
from kvlab.views.audit_findings import gather
from kvlab.views.stepper import Stepper


class SentinelAudit(Stepper):
    """Shows which slots hold somebody else's K and V. Step 0 is the whole, each further step one wrong slot.

    Args:
        cache: the `PagedKVCache` that was audited, for its numbers of layers and heads.
        manager: any object with the smallest manager's interface.
        mismatches: what `SentinelWriter.audit(manager)` returned, or the writer itself.
        request_ids: whose tables to draw; by default those that the manager or the writer knows, and those
            in the mismatches.
        step: the step to show first.
    """

    def __init__(
        self,
        cache: Any,
        manager: Any,
        mismatches: Sequence[Any] | Any,
        *,
        request_ids: Sequence[Hashable] | None = None,
        step: int = 0,
    ):
        writer = mismatches if hasattr(mismatches, "audit") else None
        found = writer.audit(manager) if writer is not None else list(mismatches)
        ids = _request_ids(manager, writer, found) if request_ids is None else request_ids
        findings = gather(found)
        self._view = AuditView(snapshot(manager, ids), findings, cache.num_layers, cache.num_kv_heads)
        super().__init__(len(findings) + 1, step=step, slider_name="wrong slot")

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a step."""
        return draw_audit(self._view, step, uid=uid, standalone=standalone)

    def tell(self, step: int) -> str:
        """The step in one line."""
        return tell_audit(self._view, step)


def _request_ids(manager: Any, writer: Any, found: Sequence[Any]) -> list[Hashable]:
    for source in (manager, writer):
        if hasattr(source, "request_ids"):
            return list(source.request_ids())
    return list(dict.fromkeys(mismatch.request_id for mismatch in found))
