"""Steps of a caching manager with sentinels in every slot: forks, beams, hits, copies in one call a step."""

from itertools import count

from kvlab.beam_tables import carry_out, plan_moves
from kvlab.kv_cache import PagedKVCache
from kvlab.sentinel import SentinelWriter
from kvlab.sentinel_record import RECORD_LANES


class SharingRun:
    """Requests with token ids, no name used twice; what a hit must hold is known by the tokens.

    `tokens[request_id]` outlives the request, since others may have found its blocks.
    """

    def __init__(self, manager, wrap=lambda cache: cache, **sizes):
        sizes = {"num_layers": 1, "num_kv_heads": 1, "head_dim": RECORD_LANES, **sizes}
        self.manager = manager
        cache = PagedKVCache(num_blocks=manager.num_blocks, block_size=manager.block_size, **sizes)
        self.cache = wrap(cache)
        self.writer = SentinelWriter(cache)
        self.tokens = {}
        self.names = (f"b{number}" for number in count())
        self.written = self.hits = self.copies = self.forks = 0

    def live(self):
        return self.manager.request_ids()

    def step(self, batch):
        """Reserve, copy once, write: as PagedSequences does."""
        with self.manager.reserve(batch) as reservation:
            self.cache.copy(reservation.copies)
            for request_id, growth in reservation.items():
                self.write(request_id, growth.slots, batch[request_id], growth.cached)
        self.copies += len(reservation.copies)

    def write(self, request_id, slots, ids, cached):
        first = len(self.tokens.setdefault(request_id, []))
        self.tokens[request_id] += ids
        if cached:
            self.expect_the_same_tokens(request_id, self.writer.hit(request_id, slots[:cached]))
            self.hits += cached
        self.writer.write_many(request_id, first + cached, slots[cached:])
        self.written += len(slots) - cached

    def expect_the_same_tokens(self, request_id, writers):
        """Each token's KV depends on all before it: whoever wrote it had the same tokens up to there.

        A writer that is the request itself means that nobody had written the slot; the audit says so.
        """
        end = {writer: position + 1 for position, writer in enumerate(writers)}
        for writer, length in end.items():
            assert self.tokens[writer][:length] == self.tokens[request_id][:length]

    def fork(self, parent, child):
        self.manager.fork(parent, child)
        self.writer.fork(parent, child)
        self.tokens[child] = list(self.tokens[parent])
        self.forks += 1

    def release(self, request_id):
        self.manager.release(request_id)
        self.writer.release(request_id)

    def beam_step(self, live, parents):
        """The beams die and are forked; the requests that go on."""
        moves = plan_moves(live, parents, self.names)
        carry_out(moves, self)
        return moves.children

    def audit(self):
        return self.writer.audit(self.manager)

    def findings(self):
        """(request, position): (expected, found, state)."""
        return {(m.request_id, m.position): (m.expected, m.found, m.state) for m in self.audit()}
