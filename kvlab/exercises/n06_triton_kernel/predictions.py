"""What notebook 06 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "06.programs",
        "A batch has 3 sequences, the model 8 KV heads and 32 query heads, and each walk is cut into "
        "4 splits. How many programs does the launch have?",
        96,
        "3 sequences × 8 KV heads × 4 splits. The 4 query heads of a group ride along in one program, so "
        "that their K and V are read once.",
    ),
    Prediction(
        "06.busy",
        "One long sequence, 8 KV heads, and a GPU with 132 processors. Without splits, how many of them have "
        "something to do?",
        8,
        "one program a KV head, however long the sequence is. The other 124 wait, and with them most of the "
        "memory bandwidth. Splits give them work.",
    ),
    Prediction(
        "06.overflow",
        "A block has 16 slots × 8 KV heads × 128 numbers = 16,384 elements. An int32 ends below 2 ** 31 = "
        "2,147,483,648. Which is the first block whose offset does not fit?",
        131072,
        "2 ** 31 / 16,384 = 131,072. In bfloat16 that is 4 GiB of K: small tests pass, and a large GPU reads "
        "from a negative address.",
    ),
    Prediction(
        "06.hints",
        "Triton looks at the arguments: pointers and strides that 16 divides let it copy 16 bytes with one "
        "instruction. The code for a Hopper GPU has 32 such copies. How many are left without that hint?",
        0,
        "an address that may be odd allows no wide copy. The numbers come two bytes at a time, through "
        "registers, and there are not enough of those either.",
    ),
]
