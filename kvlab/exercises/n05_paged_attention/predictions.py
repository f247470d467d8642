"""What notebook 05 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "05.scattered",
        "The same 11 tokens are written twice: once into blocks 0, 1, 2, once into blocks 5, 2, 7. One query "
        "attends to both. How do the two outputs differ?",
        "not at all",
        "the same numbers are added in the same order. Where a block lies is not part of the sum.",
        choices=("not at all", "by rounding", "completely"),
    ),
    Prediction(
        "05.swapped",
        "Now swap the first two entries of the table, [2, 5, 7] for [5, 2, 7], and leave the blocks as they "
        "are. Both are full. How does the output differ?",
        "by rounding",
        "a sum does not mind its order. A token's position went into its K when that was written; swapped "
        "full blocks only change the order of the additions. So attention may not notice a table in the "
        "wrong order; sentinels do.",
        choices=("not at all", "by rounding", "completely"),
    ),
    Prediction(
        "05.rescale",
        "The first block had the scores 1 and 2, so the running sum is exp(1 - 2) + exp(0) = 1.37. The next "
        "block has the score 3. What is the running sum after it, to one decimal?",
        1.5,
        "the maximum moves to 3, so the old sum shrinks by exp(2 - 3) = 0.37 to 0.5, and the new score adds "
        "exp(0) = 1.",
    ),
    Prediction(
        "05.nan",
        "A block has one slot that no token uses. Its V holds NaN, and its weight is exactly 0. What is the "
        "output?",
        "NaN everywhere",
        "0 * NaN is NaN, and a sum with one NaN in it is NaN, for every number of the output.",
        choices=("as if the slot were not there", "one NaN", "NaN everywhere"),
    ),
    Prediction(
        "05.intensity",
        "K and V are bfloat16, and 4 query heads share a KV head. In a decode step each stored number is "
        "multiplied and added once for each of the 4 heads. How many operations (a multiplication and an "
        "addition are two) is that for each byte that is read?",
        4,
        "2 operations for each of 4 heads on a number of 2 bytes: 8 / 2 = 4. A large GPU can do some 200 "
        "while a byte arrives, so a decode step waits for memory.",
    ),
]
