"""Prompts, a script and learners' caches for the tests of the prefix cache's figure."""

from collections import deque

from kvlab import BlockManager, parse_script
from kvlab.views import prompt_tokens
from kvlab.views.prefix_drawing import draw_prefix
from kvlab.views.prefix_layout import PrefixLayout
from kvlab.views.prefix_steps import record_prefixes

FOCUS = "var(--kv-focus)"
PROMPTS = {
    "A": "you are a helpful assistant and what is a cache",
    "B": "you are a helpful assistant and what is a block",
    "C": "write me a long poem about the sea the wind and a boat",
}
SCRIPT = "append A; release A; append B; release B; append C; release C; append A"


def run(prompts=PROMPTS, script=SCRIPT, manager=None):
    tokens = {
        rid: prompt_tokens.words(p if isinstance(p, str) else prompt_tokens.spelled(p))
        for rid, p in prompts.items()
    }
    manager = manager or BlockManager(5, 4, prefix_caching=True)
    return record_prefixes(tokens, parse_script(script), manager)


def drawn(frames):
    layout = PrefixLayout(frames)
    return layout, [draw_prefix(layout, frames, step) for step in range(len(frames))]


class Learner:
    """A small cache that a learner could write: it keeps no object that the figure knows."""

    num_blocks, block_size = 6, 4

    def __init__(self):
        self.free, self.tables, self.lengths, self.known = deque(range(6)), {}, {}, {}

    def append(self, request_id, tokens):
        table = self.tables.setdefault(request_id, [])
        self.lengths[request_id] = self.lengths.get(request_id, 0) + len(tokens)
        if not table:
            for end in range(4, self.most(len(tokens)) + 1, 4):
                block = self.known.get(self.key(tokens, end))
                if block is None:
                    break
                if block in self.free:
                    self.free.remove(block)
                table.append(block)
        while len(table) * 4 < self.lengths[request_id]:
            block = self.free.popleft()
            self.known = {key: b for key, b in self.known.items() if b != block}
            table.append(block)
        for end in range(4, len(tokens) + 1, 4):
            self.known.setdefault(self.key(tokens, end), table[end // 4 - 1])

    def most(self, count):
        return count - 1

    def key(self, tokens, end):
        return tuple(tokens[:end])

    def release(self, request_id):
        held = {b for rid, table in self.tables.items() if rid != request_id for b in table}
        self.free += [b for b in reversed(self.tables.pop(request_id)) if b not in held]
        del self.lengths[request_id]

    def fork(self, parent, child):
        raise NotImplementedError

    def block_table(self, request_id):
        return list(self.tables[request_id])

    def length(self, request_id):
        return self.lengths[request_id]

    def free_order(self):
        return list(self.free)


class HashesOnlyItsOwnTokens(Learner):
    def key(self, tokens, end):
        return tuple(tokens[end - 4 : end])


class LeavesNothingToCompute(Learner):
    def most(self, count):
        return count
