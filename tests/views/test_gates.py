"""What a redraw may weigh so that it paints at once: 25 kB, 100 elements, for 64 blocks of 16 slots too."""

import random

import pytest

from kvlab import BlockManager, Mismatch, record
from kvlab.online_softmax import TraceStep
from kvlab.state import State
from kvlab.views.address import Tensor
from kvlab.views.address_drawing import AddressView, draw_address
from kvlab.views.allocator_drawing import Scene, draw_frame
from kvlab.views.audit_drawing import AuditView, draw_audit
from kvlab.views.audit_findings import gather
from kvlab.views.map_drawing import draw_map
from kvlab.views.softmax_drawing import draw_softmax

from .reading import count_elements, parse

SIZES = [(64, 16), (16, 12), (16, 2), (8, 4), (24, 8), (64, 3)]


def busy_script(names, steps, block_size, seed):
    """Growth, forks and releases, with a pool that is nearly full most of the time."""
    rng, live, script = random.Random(seed), [], []
    for _ in range(steps):
        name = rng.choice(names)
        if name in live and rng.random() < 0.12:
            script.append(f"release {name}")
            live.remove(name)
        elif name not in live and live and rng.random() < 0.4:
            script.append(f"fork {rng.choice(live)} {name}")
            live.append(name)
        else:
            script.append(f"append {name} {rng.randint(1, 2 * block_size)}")
            live.append(name) if name not in live else None
    return "; ".join(script)


def check(svg):
    parse(svg)
    size, elements = len(svg.encode()), count_elements(svg)
    assert size <= 25_000, f"{size} bytes"
    assert elements <= 100, f"{elements} elements"
    assert svg.count("<title>") == 1


@pytest.mark.parametrize(("num_blocks", "block_size"), SIZES)
@pytest.mark.parametrize("names", ["ABCD", "ABCDEFGHIJKL", [f"request-{i}" for i in range(9)]])
def test_allocator_frames(num_blocks, block_size, names):
    script = busy_script(list(names), 40, block_size, seed=num_blocks + block_size)
    frames = record(script, BlockManager(num_blocks, block_size))
    scene = Scene(frames)
    for step in range(len(frames)):
        check(draw_frame(scene, frames, step, uid="kvlab12"))


@pytest.mark.parametrize(("num_blocks", "block_size"), SIZES)
def test_every_block_shared_by_every_request(num_blocks, block_size):
    table = tuple(range(num_blocks))
    tables = dict.fromkeys("ABCDEFGHI", table)
    lengths = dict.fromkeys(tables, num_blocks * block_size - 1)
    check(draw_map(State(num_blocks, block_size, tables, lengths, (), may_share=True)))


@pytest.mark.parametrize(("num_blocks", "block_size"), SIZES)
def test_a_block_for_each_request(num_blocks, block_size):
    tables = {f"r{i}": (i,) for i in range(num_blocks)}
    check(draw_map(State(num_blocks, block_size, tables, dict.fromkeys(tables, 1), ())))


@pytest.mark.parametrize(("num_blocks", "block_size"), SIZES)
def test_address_translation(num_blocks, block_size):
    table = tuple(reversed(range(num_blocks)))
    tensor = Tensor(30, num_blocks, block_size, 8, 128)
    length = num_blocks * block_size - 1
    for position in (0, 1, length // 2, length - 1):
        check(draw_address(AddressView(table, length, tensor, "A", position, problem="Words. " * 30)))


@pytest.mark.parametrize(("num_blocks", "block_size"), SIZES)
def test_an_audit_with_every_slot_wrong(num_blocks, block_size):
    table = tuple(range(num_blocks))
    length = num_blocks * block_size
    state = State(num_blocks, block_size, {"A": table}, {"A": length}, ())
    mismatches = [
        Mismatch(t // block_size, t % block_size, layer, head, kind, "A", t, f"A[{t}]", "B[2]", "other")
        for t in range(length)
        for layer in range(2)
        for head in range(2)
        for kind in "KV"
    ]
    view = AuditView(state, gather(mismatches), 2, 2)
    for step in (0, 1, length // 2, length):
        check(draw_audit(view, step))


def test_a_long_softmax():
    trace = [
        TraceStep(b, tuple(range(b * 16, b * 16 + 16)), (0.5,) * 16, 0.5, 1.0, (0.25,) * 128)
        for b in range(64)
    ]
    for step in (0, 1, 32, 64):
        check(draw_softmax(trace, step))
