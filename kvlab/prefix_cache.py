"""Chained hashes of full blocks, and the longest cached prefix of a prompt.

A full block's KV depends on its own tokens and on every token before them, so its hash takes in the hash of
the block before: H(parent, tokens, extra keys). Two prompts with an equal prefix get equal hashes for it,
block by block, up to the first block that differs (vLLM calls this automatic prefix caching).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

ROOT = b"kvlab: the empty prefix"

BlockHash = Callable[[bytes, bytes], bytes]


def sha256(parent: bytes, content: bytes) -> bytes:
    """The default hash: nobody finds a second prefix with the same value."""
    return hashlib.sha256(parent + content).digest()


def toy_hash(parent: bytes, content: bytes) -> bytes:
    """An 8-bit hash that collides at once, to show why a hit compares tokens."""
    return bytes([(sum(parent) * 31 + sum(content)) % 256])


@dataclass(frozen=True)
class ExtraKeys:
    """What else a block's KV depends on; each enters the hash under its own tag.

    adapter: the LoRA adapter's identity; enters every block.
    salt: separates tenants; enters block 0 and reaches the rest through the chain.
    content: (first position, number of tokens, id) of images or the like whose placeholder tokens look
        alike; enters the blocks that it overlaps.
    """

    adapter: Hashable = None
    salt: Hashable = None
    content: tuple[tuple[int, int, Hashable], ...] = ()

    def of_block(self, logical_block: int, block_size: int) -> tuple:
        """The tagged keys of one block."""
        keys: list[tuple] = []
        if self.adapter is not None:
            keys.append(("adapter", self.adapter))
        start, end = logical_block * block_size, (logical_block + 1) * block_size
        for first, count, content_id in self.content:
            if first < end and start < first + count:
                keys.append(("content", content_id, first - start))
        if self.salt is not None and logical_block == 0:
            keys.append(("salt", self.salt))
        return tuple(keys)


class ChainLink(NamedTuple):
    """One full block's place in the chain.

    key: what the cache is searched by. proof: always sha256, so that a weak `key` can be found out. tokens
    and extra: the block's own.
    """

    key: bytes
    proof: bytes
    tokens: tuple[int, ...]
    extra: tuple


START = ChainLink(ROOT, ROOT, (), ())


class PrefixStats(NamedTuple):
    """Tokens asked for and found by new requests, and blocks whose content was dropped for new content."""

    queries: int
    hits: int
    evictions: int


class PrefixCache:
    """Which blocks hold the KV of which full-block prefixes.

    Several blocks may hold the same content; the one cached first is found. A block stays known while its
    slots are intact, also after its last holder is gone: free is not empty.
    """

    def __init__(self, block_size: int, block_hash: BlockHash = sha256):
        self.block_size = block_size
        self.queries = self.hits = self.evictions = 0
        self._hash = block_hash
        self._links: dict[int, ChainLink] = {}
        self._blocks: dict[bytes, dict[int, None]] = {}

    def __contains__(self, block: int) -> bool:
        return block in self._links

    def __len__(self) -> int:
        return len(self._links)

    def follow(self, parent: ChainLink, tokens: Sequence[int], extra: tuple = ()) -> ChainLink:
        """The link after `parent` for one full block of tokens; costs one block, however long the prefix."""
        content = array("q", tokens).tobytes() + repr(extra).encode()
        proof = sha256(parent.proof, content)
        key = proof if self._hash is sha256 else self._hash(parent.key, content)
        return ChainLink(key, proof, tuple(tokens), extra)

    def links(self, tokens: Sequence[int], keys: ExtraKeys, limit: int) -> Iterator[ChainLink]:
        """The chain over the first `limit` tokens' full blocks."""
        link = START
        for logical_block in range(limit // self.block_size):
            start = logical_block * self.block_size
            extra = keys.of_block(logical_block, self.block_size)
            link = self.follow(link, tokens[start : start + self.block_size], extra)
            yield link

    def longest_prefix(self, tokens: Sequence[int], keys: ExtraKeys) -> list[tuple[int, ChainLink]]:
        """Blocks that already hold the prompt's leading KV, with their links.

        Whole blocks only, and never the last token: at least one must be computed to have logits to sample
        from, so at most (len(tokens) - 1) // block_size blocks.
        """
        found = []
        for link in self.links(tokens, keys, len(tokens) - 1):
            block = self.find(link)
            if block is None:
                break
            found.append((block, link))
        return found

    def find(self, link: ChainLink) -> int | None:
        """A block with exactly this content. An equal key with other content is a collision, so a miss."""
        for block in self._blocks.get(link.key, ()):
            if self._links[block].proof == link.proof and self._links[block].tokens == link.tokens:
                return block
        return None

    def link(self, block: int) -> ChainLink | None:
        """The content that the block is known to hold."""
        return self._links.get(block)

    def add(self, block: int, link: ChainLink) -> None:
        """The block has been filled with the link's content."""
        self._links[block] = link
        self._blocks.setdefault(link.key, {})[block] = None

    def evict(self, block: int) -> bool:
        """The block is handed out for new content: forget its old one; whether there was any."""
        link = self._links.pop(block, None)
        if link is None:
            return False
        blocks = self._blocks[link.key]
        del blocks[block]
        if not blocks:
            del self._blocks[link.key]
        self.evictions += 1
        return True

    def count(self, queries: int, hits: int) -> None:
        """A new request asked for `queries` tokens and found `hits`."""
        self.queries += queries
        self.hits += hits

    @property
    def stats(self) -> PrefixStats:
        """Tokens that new requests asked for, tokens found, and blocks evicted."""
        return PrefixStats(self.queries, self.hits, self.evictions)

    def clear(self) -> None:
        """Forget everything."""
        self._links.clear()
        self._blocks.clear()


class TokenChain:
    """A request's tokens as far as hashing needs them: the last full block's link and what came after it.

    Growing by one token costs one append to an array, and one hash when a block is full; nothing starts over.
    """

    __slots__ = ("_block_size", "_cache", "_keys", "_link", "_num_links", "_pending")

    def __init__(self, cache: PrefixCache, keys: ExtraKeys):
        self._cache = cache
        self._block_size = cache.block_size
        self._keys = keys
        self._link: ChainLink | None = START
        self._num_links = 0
        self._pending = array("q")

    def start_after(self, link: ChainLink, num_links: int) -> None:
        """The first `num_links` blocks were found in the cache; the last of them is `link`."""
        self._link, self._num_links = link, num_links

    def push(self, token: int | None) -> ChainLink | None:
        """One more token: the link of the block that it fills, if any. Without its id the chain is lost.

        Raises:
            ValueError: the token is no whole number of 64 bits; the chain is as it was.
        """
        if token is None or self._link is None:
            self.lose()
            return None
        try:
            self._pending.append(token)
        except (TypeError, OverflowError) as error:
            raise ValueError(f"token ids are whole numbers of 64 bits, not {token!r} ({error})") from None
        return self._close_block() if len(self._pending) == self._block_size else None

    def extend(self, tokens: Sequence[int]) -> list[tuple[int, ChainLink]]:
        """(logical block, link) of each block that the tokens fill."""
        if self._link is None:
            return []
        filled = []
        start = 0
        while start < len(tokens):
            room = self._block_size - len(self._pending)
            self._pending.extend(tokens[start : start + room])
            start += room
            if len(self._pending) == self._block_size:
                filled.append((self._num_links, self._close_block()))
        return filled

    def lose(self) -> None:
        """Tokens were appended without their ids: from here on no block of the request can be hashed."""
        self._link = None
        self._pending = array("q")

    def copy(self) -> TokenChain:
        """The same chain for a fork of the request."""
        twin = TokenChain(self._cache, self._keys)
        twin._link, twin._num_links, twin._pending = self._link, self._num_links, self._pending[:]
        return twin

    def _close_block(self) -> ChainLink:
        extra = self._keys.of_block(self._num_links, self._block_size)
        self._link = self._cache.follow(self._link, self._pending, extra)
        self._num_links += 1
        self._pending = array("q")
        return self._link
