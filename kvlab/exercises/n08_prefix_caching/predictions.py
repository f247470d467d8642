"""What notebook 08 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "08.early",
        "A prompt of 12 tokens in blocks of 4 has three hashes. You change token 5. How many of the three "
        "change?",
        2,
        "token 5 is in block 1, whose hash enters block 2's; block 0 lies before it and stays as it was.",
    ),
    Prediction(
        "08.twice",
        "A prompt of 32 tokens was computed and is cached, B = 16. The same 32 tokens come again. How many "
        "of "
        "them need no computing?",
        16,
        "the last token must be computed, or there is nothing to sample the answer from; the other 31 hold "
        "one "
        "whole block.",
    ),
    Prediction(
        "08.collide",
        "A cache is searched by hash alone, and two different prompts have the same hash. The first is "
        "cached, the "
        "second asks. What does it get?",
        "an answer to the other prompt",
        "its tokens are its own, but from the hit on it attends to K and V of the other prompt, and nothing "
        "raises an error.",
        choices=("an error", "a miss", "an answer to the other prompt"),
    ),
    Prediction(
        "08.queue",
        "B = 16. A request of 55 tokens holds blocks 1, 2, 3, 4, and blocks 5 to 10 are free, in this "
        "order. It "
        "ends. Which ten blocks does the free queue name, head first?",
        (4, 5, 6, 7, 8, 9, 10, 3, 2, 1),
        "block 4 is partial, cannot be found again, and is used first; of the cached ones the end of the "
        "prompt "
        "goes before its beginning, because a hit needs the beginning.",
    ),
    Prediction(
        "08.room",
        "A request needs 4 new blocks besides the 2 it finds in the cache. 5 blocks are free, and the 2 "
        "found are "
        "among them. Can it be admitted?",
        "no",
        "the two hits leave the free list when they are touched, so 3 remain for 4 new blocks. An engine "
        "that "
        "counted 5 took the blocks first and noticed too late.",
        choices=("yes", "no"),
    ),
    Prediction(
        "08.salt",
        "Two tenants send the same 49 tokens, B = 16, each with a salt of its own. The first prompt is "
        "cached. How "
        "many tokens does the second tenant's request find?",
        0,
        "the salt is in block 0's hash, and through the chain in every other; equal tokens are not enough.",
    ),
    Prediction(
        "08.sixteen",
        "16 requests share a system prompt of 2,000 tokens. Counted for each of them it is 1.835 GB. How "
        "much of "
        "that does sharing save?",
        "15/16 of it",
        "the first request has to store it once; only the other fifteen copies are saved.",
        choices=("all of it", "15/16 of it", "1/16 of it"),
    ),
]
