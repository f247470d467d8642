"""What a step is told as, where the manager gives blocks back on its own."""

from kvlab.recording import record
from kvlab.views.contents import read_blocks
from kvlab.window_manager import WindowManager


def _frames(null_block):
    return record("append A 11; append A; append A", WindowManager(8, 4, 8, null_block=null_block))


def test_a_block_behind_the_window_is_told_as_given_back():
    told = [frame.telling for frame in _frames(null_block=True)]
    assert "block 1 behind the window given back, block 3 has room" in told[2]
    assert "table [0, 2, 3], length 12" in told[2]
    assert "block 4 allocated" in told[3] and "given back" not in told[3] and "block 0" not in told[3]


def test_without_a_null_block_the_hole_is_no_block_either():
    told = [frame.telling for frame in _frames(null_block=False)]
    assert "block 0 behind the window given back" in told[2] and "table [-1, 1, 2]" in told[2]


def test_the_picture_does_not_fill_the_null_block():
    contents = read_blocks(_frames(null_block=True)[2].state)
    assert contents[0].kind == "null" and contents[0].filled == 0
    assert contents[1].kind == "free" and contents[2].holders == ("A",)
