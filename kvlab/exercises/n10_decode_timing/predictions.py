"""What notebook 10 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "10.bytes",
        "One layer, 64 sequences of 8,192 tokens, 8 KV heads of 128 numbers, bfloat16. How many GB of K and "
        "V does one decode step read in this layer, to one decimal?",
        2.1,
        "2 * 64 * 8,192 * 8 * 128 numbers of 2 bytes are 2,147,483,648 bytes.",
    ),
    Prediction(
        "10.microseconds",
        "A GPU whose data sheet says 4.8 TB/s reads these 2.147 GB. How many microseconds does that take at "
        "least, rounded to a whole number?",
        447,
        "2.147e9 / 4.8e12 s = 447 microseconds. It is a prediction from a data sheet, not a measurement: no "
        "card reaches all of that figure.",
    ),
    Prediction(
        "10.bound",
        "In a decode step with 4 query heads to a KV head, bfloat16, each byte that arrives is used for "
        "about 4 operations. A data sheet says 990e12 operations and 4.8e12 bytes a second. Which limit does "
        "the step meet first there?",
        "memory",
        "990 / 4.8 = 206 operations could be done while one byte arrives, and only 4 are asked for. A single "
        "CPU thread does far less arithmetic: see above how close its ridge is.",
        choices=("memory", "arithmetic", "both at once"),
    ),
    Prediction(
        "10.gather",
        "One way copies the scattered blocks into one contiguous tensor and attends to that. How many times "
        "does it move the bytes of K and V, compared with reading them once where they are?",
        3,
        "read them, write the copy, read the copy. torch.cat growth does the same three for each new token.",
    ),
    Prediction(
        "10.table",
        "With a block size of 1 a block table has one int32 for every token. A token here has 8,192 bytes of "
        "K and V. What share of the bytes is the table then?",
        "0.05 %",
        "4 / 8,192 = 0.05 %. If small blocks are slower, it is not for the table's bytes: it is the jumps, "
        "and the work to follow them.",
        choices=("0.05 %", "0.5 %", "5 %"),
    ),
    Prediction(
        "10.fewer",
        "A model goes from 32 KV heads in bfloat16 to 8 KV heads in float8. By what factor do the bytes of a "
        "decode step shrink?",
        8,
        "a quarter of the heads, half the bytes a number. The number of query heads changes the arithmetic "
        "only.",
    ),
    Prediction(
        "10.split",
        "A kernel runs one program for each sequence and KV head. A GPU with 132 multiprocessors serves one "
        "sequence of 65,536 tokens, 8 KV heads. How many multiprocessors have work, without a split?",
        8,
        "1 sequence * 8 heads = 8 programs, and 124 of 132 multiprocessors look on. So the walk over the "
        "blocks is cut into parts, which are merged as in notebook 05.",
    ),
    Prediction(
        "10.step",
        "An article derives that torch.cat growth copies for 0.55 ms in a decode step that it measured at "
        "19.65 ms (7B, one sequence of 8k). Paging copies nothing. By how many percent does the step get "
        "shorter, to one decimal?",
        2.8,
        "0.55 / 19.65 = 2.8 %. The rest of the step, mostly reading the weights, does not change.",
    ),
]
