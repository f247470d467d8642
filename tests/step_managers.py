"""Managers to take decoder steps with, ours and others', and paged and contiguous sequences side by side."""

from kvlab.block_manager import BlockManager
from kvlab.sequences import ContiguousSequences, PagedSequences

PROMPT = [3, 14, 15, 9, 26, 5, 35]


class Smallest:
    """The smallest manager anyone may write: plain tuples, no reserve, no fork."""

    def __init__(self, num_blocks, block_size):
        self.num_blocks, self.block_size = num_blocks, block_size
        self.free, self.tables, self.lengths = list(range(num_blocks)), {}, {}

    def append_slot(self, request_id):
        table = self.tables.setdefault(request_id, [])
        length = self.lengths.setdefault(request_id, 0)
        if length % self.block_size == 0:
            if not self.free:
                raise MemoryError("no block is free")
            table.append(self.free.pop(0))
        self.lengths[request_id] += 1
        return table[length // self.block_size], length % self.block_size

    def release(self, request_id):
        self.free += self.tables.pop(request_id)
        del self.lengths[request_id]

    def block_table(self, request_id):
        return self.tables[request_id]

    def length(self, request_id):
        return self.lengths[request_id]

    def free_order(self):
        return self.free


class OneByOne:
    """A BlockManager with its `reserve` and `append` hidden: forks and copies, but token by token."""

    def __init__(self, num_blocks, block_size):
        inner = BlockManager(num_blocks, block_size)
        self.num_blocks, self.block_size = num_blocks, block_size
        for name in ("append_slot", "release", "block_table", "length", "free_order", "fork"):
            setattr(self, name, getattr(inner, name))


MANAGERS = [BlockManager, Smallest, OneByOne]


def both(decoder, manager):
    return ContiguousSequences(decoder.config), PagedSequences(decoder.config, manager)


def assert_equal_steps(decoder, pair, tokens, tolerance=1e-5):
    expected, found = (decoder.step(sequences, tokens) for sequences in pair)
    assert list(found) == list(expected) == list(tokens)
    for request_id in tokens:
        assert (found[request_id] - expected[request_id]).abs().max() < tolerance
        assert pair[0].length(request_id) == pair[1].length(request_id)
    return found
