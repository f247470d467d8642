"""Words for the steps of the prefix cache, and the short form of a hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvlab.prefix_cache import ChainLink
from kvlab.state import State


def short_hash(link: ChainLink) -> str:
    """The first four hexadecimal digits of a block's hash: enough to tell a figure's blocks apart."""
    return link.key.hex()[:4]


def tell(frame, before: State, known: Mapping[int, ChainLink], arrives: bool) -> str:
    """The step in words, such as "B arrives with 16 tokens: 12 found in blocks 0, 1, 2; 4 left ..."."""
    operation = frame.operation
    rid = operation.request_id
    if operation.kind == "release":
        return _ended(frame, rid)
    if not arrives:
        length = frame.state.lengths[rid]
        return f"{rid} generates {count(operation.count, 'token')}: length {length}.{_lost(frame)}"
    total, found = len(frame.tokens[rid]), frame.found[rid]
    new = frame.state.tables[rid][found // frame.state.block_size :]
    hits = f"{found} found in {blocks(frame.touched)}" if found else "nothing is found"
    work = f"{total - found} left to compute, in {blocks(new)}" if new else "nothing left to compute"
    return f"{rid} arrives with {count(total, 'token')}: {hits}; {work}.{_lost(frame)}{_capped(frame, known)}"


def sum_up(frame) -> str:
    """Free is not empty, in one sentence."""
    free = frame.state.free
    kept = sum(block in frame.contents for block in free)
    if not free:
        return "No block is free."
    start = f"{count(len(free), 'block')} {'is' if len(free) == 1 else 'are'} free"
    if not kept:
        return f"{start}; none of them holds anything that can be found."
    return f"{start}; {kept} still hold{'s' * (kept == 1)} content that can be found: free is not empty."


def blocks(ids: Sequence[int]) -> str:
    """ "block 3" or "blocks 3, 4"."""
    return f"block{'s' * (len(ids) != 1)} {', '.join(map(str, ids))}"


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}{'s' * (number != 1)}"


def sentence(raised: Exception) -> str:
    """An exception as a learner should read it."""
    # str() of a KeyError is the repr of its message.
    message = raised.args[0] if isinstance(raised, KeyError) and raised.args else raised
    return f"{type(raised).__name__}: {message}"


def _ended(frame, rid) -> str:
    kept = [block for block in frame.freed if block in frame.contents]
    plain = [block for block in frame.freed if block not in frame.contents]
    said = []
    if kept:
        join = (
            "joins the tail and keeps its"
            if len(kept) == 1
            else "join the tail, last one first, and keep their"
        )
        said.append(f"{blocks(kept)} {join} content")
    if plain:
        have = "has no hash and joins" if len(plain) == 1 else "have no hash and join"
        said.append(f"{blocks(plain)} {have} the head")
    return f"{rid} ends: {'; '.join(said) or 'its blocks are held by others'}."


def _lost(frame) -> str:
    lost = [f"block {block} loses {short_hash(link)}" for block, link in frame.evicted.items()]
    return f" Evicted: {', '.join(lost)}." if lost else ""


def _capped(frame, known: Mapping[int, ChainLink]) -> str:
    """Why a prompt that is known whole still computes its last block."""
    rid, size = frame.operation.request_id, frame.state.block_size
    chain, total = frame.chains[rid], len(frame.tokens[rid])
    whole = len(chain) * size == total and frame.found[rid] == total - size
    if whole and any(link.proof == chain[-1].proof for link in known.values()):
        return " Its last block is known, too, but one token must be computed to have logits."
    return ""
