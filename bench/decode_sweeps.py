"""Decode attention against this machine's limits, over context, batch, block size, heads, dtype and splits.

Run: python bench/decode_sweeps.py [the options of python -m kvlab bench]
Ends within three minutes by its own clock; the points that did not fit are named.
"""

import sys

from kvlab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["bench", "--budget", "180", *sys.argv[1:]]))
