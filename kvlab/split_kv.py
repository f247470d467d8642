"""How many parts to cut each walk over the KV into, when too few sequences leave processors idle."""

from __future__ import annotations

ENOUGH = 0.8  # this share of the processors busy without a split: splitting would only add a merge
CLOSE = 0.85  # the smallest count that comes this close to the best one wins: fewer parts, less to merge
MAX_SPLITS = 128


def choose_splits(programs: int, tiles: int, processors: int) -> int:
    """The number of splits for a grid of `programs` (sequences x KV heads) over `processors`.

    The rule is FlashAttention's: programs run in waves of `processors`, the last wave may be partly empty,
    and the share of the waves that is filled is the efficiency of a split count. Counts that leave the
    longest split as long as a smaller count does are not considered.

    Args:
        programs: what runs without splitting. tiles: tiles of positions in the longest walk; there are never
            more splits than tiles. processors: multiprocessors of the GPU, or cores.
    """
    if programs < 1 or tiles < 2 or programs >= ENOUGH * processors:
        return 1
    efficiency = {}
    shortest = None
    for splits in range(1, min(MAX_SPLITS, tiles) + 1):
        length = -(-tiles // splits)
        if length == shortest:
            continue
        shortest = length
        waves = programs * splits / processors
        efficiency[splits] = waves / -(-programs * splits // processors)
    best = max(efficiency.values())
    return next(splits for splits, share in efficiency.items() if share >= CLOSE * best)
