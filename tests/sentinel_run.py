"""A manager, a cache and a sentinel writer driven together."""

from kvlab.block_table import BlockCopy
from kvlab.kv_cache import PagedKVCache
from kvlab.sentinel import SentinelWriter

LAYERS, HEADS = 2, 2


class Run:
    """A manager, a cache and a writer driven together, one token at a time, as a decode loop would."""

    def __init__(self, manager, cache=None, wrap=lambda cache: cache, **sizes):
        sizes = {"num_layers": LAYERS, "num_kv_heads": HEADS, "head_dim": 16, **sizes}
        self.manager = manager
        self.cache = PagedKVCache(num_blocks=manager.num_blocks, block_size=manager.block_size, **sizes)
        self.writer = SentinelWriter(wrap(self.cache))
        self.written = {}

    def append(self, request_ids):
        """One token for each letter."""
        for request_id in request_ids:
            slot = self.manager.append_slot(request_id)
            if slot.copied_from is not None:
                self.cache.copy([BlockCopy(slot.copied_from, slot.block, slot.offset)])
            position = self.written.get(request_id, 0)
            self.writer.write(request_id, position, slot)
            self.written[request_id] = position + 1

    def fork(self, parent_id, child_id):
        self.manager.fork(parent_id, child_id)
        self.writer.fork(parent_id, child_id)
        self.written[child_id] = self.written[parent_id]

    def release(self, request_id):
        self.manager.release(request_id)
        self.writer.release(request_id)
        del self.written[request_id]

    def audit(self):
        return self.writer.audit(self.manager)

    def findings(self):
        """(request, position, block, slot): (expected, found, state), for K and V of every layer and head."""
        by_slot = {}
        for m in self.audit():
            lanes = by_slot.setdefault((m.request_id, m.position, m.block, m.offset), {})
            lanes[m.layer, m.head, m.kind] = (m.expected, m.found, m.state)
        everywhere = {(la, h, kind) for la in range(LAYERS) for h in range(HEADS) for kind in "KV"}
        result = {}
        for slot, lanes in by_slot.items():
            assert lanes.keys() == everywhere and len(set(lanes.values())) == 1, slot
            result[slot] = next(iter(lanes.values()))
        return result
