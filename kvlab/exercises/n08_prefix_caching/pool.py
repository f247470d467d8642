"""The data of a pool with a prefix cache; notebook 08 has the learner write what it does."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from kvlab.block_pool import OutOfBlocks
from kvlab.block_table import Growth, Slot
from kvlab.prefix_cache import START, ChainLink, PrefixCache

if TYPE_CHECKING:
    from kvlab.views import BlockMap

ROOT = "root"


def sha256(parent: str, tokens: Sequence[int], extra: tuple = ()) -> str:
    """The hash of one full block: its parent's hash, its own tokens, and what else its KV depends on."""
    return hashlib.sha256(repr((parent, tuple(tokens), extra)).encode()).hexdigest()


def tiny_hash(parent: str, tokens: Sequence[int], extra: tuple = ()) -> str:
    """A sum modulo 256, in hex: blocks with the same tokens in another order collide."""
    before = 0 if parent == ROOT else int(parent, 16)
    return f"{(31 * before + sum(tokens) + len(repr(extra))) % 256:02x}"


class PrefixBlocks:
    """Blocks whose content can be found again. Block 0 is the null block: never handed out.

    free: deque of the free blocks, next to be handed out first.
    counts: by block id, how many tables hold it.
    tables, tokens: by request, its block ids and its token ids.
    found: hash -> blocks that hold this content, the one cached first in front.
    hash_of: block -> its hash; a block without cached content is not in it.
    content: block -> all token ids from the start of the prompt to the block's end, a tuple.
    evicted: blocks that lost cached content, in order.

    `H` is the hash: H(parent, tokens, extra=()). `new` and `grow` below call the learner's functions.
    """

    null_block = 0

    def __init__(self, num_blocks: int, block_size: int, H: Callable = sha256):
        self.num_blocks, self.block_size, self.H = num_blocks, block_size, H
        self.free: deque[int] = deque(range(1, num_blocks))
        self.counts = [0] * num_blocks
        self.tables: dict[Hashable, list[int]] = {}
        self.tokens: dict[Hashable, list[int]] = {}
        self.found: dict[object, list[int]] = {}
        self.hash_of: dict[int, object] = {}
        self.content: dict[int, tuple[int, ...]] = {}
        self.evicted: list[int] = []

    def new(self, request_id: Hashable, tokens: Sequence[int]) -> int:
        """A new request with its prompt; returns how many leading tokens need no computing.

        Raises:
            OutOfBlocks: too few free blocks; hits that are free count as needed, since they leave the free
                list, too. Nothing is changed.
        """
        hashes = self.chain(tokens)
        hits = self.longest_prefix(tokens, hashes)
        missing = -(-len(tokens) // self.block_size) - len(hits)
        needed = missing + sum(self.counts[block] == 0 for block in hits)
        if needed > len(self.free):
            raise OutOfBlocks(needed, len(self.free), self.num_blocks - 1)
        self.touch(hits)
        table = [*hits, *(self.take() for _ in range(missing))]
        self.tables[request_id], self.tokens[request_id] = table, list(tokens)
        for number in range(len(hits), len(hashes)):
            self.remember(table[number], hashes[number], tokens[: (number + 1) * self.block_size])
        return len(hits) * self.block_size

    def append(self, request_id: Hashable, tokens: Sequence[int]) -> Growth:
        """A prompt, or tokens generated since; what figures call, as they call kvlab's manager."""
        first = len(self.tokens.get(request_id, ()))
        cached = 0
        if request_id in self.tables:
            for token in tokens:
                self.grow(request_id, token)
        else:
            cached = self.new(request_id, tokens)
        table, size = self.tables[request_id], self.block_size
        positions = range(first, len(self.tokens[request_id]))
        return Growth([Slot(table[position // size], position % size) for position in positions], [], cached)

    def grow(self, request_id: Hashable, token: int) -> None:
        """One more token; a block that it fills can be found from now on."""
        table, tokens = self.tables[request_id], self.tokens[request_id]
        if len(tokens) % self.block_size == 0:
            table.append(self.take())
        tokens.append(token)
        if len(tokens) % self.block_size == 0:
            self.remember(table[-1], self.chain(tokens)[-1], tokens)

    def chain(self, tokens: Sequence[int]) -> list:
        """The hashes of the full blocks, by the learner's `chain_hashes`."""
        return self.chain_hashes(tokens, self.block_size, self.H)

    def remember(self, block: int, key: object, prefix: Sequence[int]) -> None:
        """The block is full and holds the end of this prefix."""
        self.found.setdefault(key, []).append(block)
        self.hash_of[block], self.content[block] = key, tuple(prefix)

    def reads(self, request_id: Hashable) -> list[int]:
        """The token ids whose K and V the request's attention finds in its blocks."""
        size, own = self.block_size, self.tokens[request_id]
        return [
            token
            for number, block in enumerate(self.tables[request_id])
            for token in self.content.get(block, own[: (number + 1) * size])[number * size :]
        ]

    def block_table(self, request_id: Hashable) -> list[int]:
        return list(self.tables[request_id])

    def length(self, request_id: Hashable) -> int:
        return len(self.tokens[request_id])

    def request_ids(self) -> list[Hashable]:
        return list(self.tables)

    def free_order(self) -> list[int]:
        return list(self.free)

    def ref_count(self, block: int) -> int:
        return self.counts[block]

    @property
    def prefix_cache(self) -> PrefixBlocks:
        """Figures ask this which blocks can still be found."""
        return self

    def follow(self, parent: ChainLink, tokens: Sequence[int], extra: tuple = ()) -> ChainLink:
        """One link of the chain as figures draw it: this pool's hash, and a proof that shows collisions."""
        link = PrefixCache(self.block_size).follow(parent, tokens, extra)
        before = ROOT if parent is START else parent.key.hex()
        return link._replace(key=bytes.fromhex(self.H(before, tokens, extra)))

    def __contains__(self, block: int) -> bool:
        return block in self.hash_of

    def picture(self) -> BlockMap:
        """The pool as it is now; free blocks that can still be found are dashed."""
        from kvlab.state import snapshot
        from kvlab.views import BlockMap

        cached = {block: self.block_size for block in self.free if block in self.hash_of}
        return BlockMap(snapshot(self, self.tables), cached=cached)

    def __repr__(self) -> str:
        cached = [block for block in self.free if block in self.hash_of]
        return f"tables {self.tables}, free {list(self.free)}, of these cached {cached}"


def pool_from(
    chain_hashes: Callable | None = None,
    longest_prefix: Callable | None = None,
    release: Callable | None = None,
    take: Callable | None = None,
    touch: Callable | None = None,
    *,
    name: str = "MyPool",
) -> type[PrefixBlocks]:
    """A class with the given functions as its methods over `PrefixBlocks`."""
    parts = {
        "chain_hashes": chain_hashes,
        "longest_prefix": longest_prefix,
        "release": release,
        "take": take,
        "touch": touch,
    }
    parts = {method: function for method, function in parts.items() if function is not None}
    for method, function in parts.items():
        if not callable(function):
            raise TypeError(f"{method} must be a function, got {function!r}.")
    methods = dict(parts)
    if chain_hashes is not None:
        methods["chain_hashes"] = staticmethod(chain_hashes)
    doc = "A pool with a prefix cache made of your functions."
    maker = (__name__, "pool_from")
    return type(name, (PrefixBlocks,), {**methods, "parts": parts, "maker": maker, "__doc__": doc})
