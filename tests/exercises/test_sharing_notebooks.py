"""What notebooks 07 and 08 claim beyond their exercises: figures, pictures of faults, and the recording."""

from pathlib import Path

import pytest

from kvlab.exercises import Blocks, SharedBlocks, get, load_answer, manager_from
from kvlab.exercises.checking import check
from kvlab.exercises.n07_copy_on_write import beams, clinic, paper
from kvlab.exercises.n08_prefix_caching import replaying
from kvlab.exercises.n08_prefix_caching.letters import letters
from kvlab.exercises.n08_prefix_caching.pool import pool_from, sha256, tiny_hash
from kvlab.exercises.registry import define
from kvlab.recording import record
from kvlab.views import PrefixCacheStepper, SharingStepper

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"


def _solved(id):
    exercise = get(id)
    return define(exercise, exercise.solution)


def test_a_manager_with_fork_counts_and_one_without_does_not():
    assert issubclass(_solved("07.manager"), SharedBlocks)
    plain = manager_from(append_slot=lambda self, r: None)
    assert issubclass(plain, Blocks) and not hasattr(plain(2, 2), "counts")


def test_the_learners_own_append_slot_of_04_grows_the_tables_of_07(capsys):
    exercise = get("04.manager")
    marked = exercise.needs[0]
    own = get(marked).solution.replace("    return table", "    self.mark = True\n    return table")
    source = get("04.release").solution + own + get("04.append").solution + exercise.stub
    assert check("04.manager", define(exercise, source))
    sharing = _solved("07.manager")(4, 2)
    sharing.append_slot("A")
    assert sharing.mark


@pytest.mark.parametrize("id", ["07.manager", "08.engine_trace"])
def test_a_class_that_passed_is_kept_and_loads_again(id, capsys):
    assert check(id, _solved(id))
    again = load_answer(id)
    said = capsys.readouterr().out
    assert "was not kept" not in said and f"your own answer to {id}" in said
    assert check(id, again)


def test_a_failing_sequence_with_forks_is_drawn_as_sharing():
    exercise = get("07.manager")
    for wrong in exercise.wrong:
        result = check("07.manager", define(exercise, wrong.source))
        stepper = result.stepper()
        assert isinstance(stepper, SharingStepper), wrong.name
        assert all(stepper.draw(step).startswith("<svg") for step in range(len(stepper.frames))), wrong.name
        assert result.counterexample.count(";") <= 3, wrong.name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("healthy", "wrong slots 0; free after everybody has gone: 6 of 6"),
        ("lost decrement", "wrong slots 0; free after everybody has gone: 5 of 6"),
        ("early free", "wrong slots 4; releasing C fails: block 0 has 0 holders"),
    ],
)
def test_what_each_patient_shows(name, says, capsys):
    clinic.examine(name)
    assert says in capsys.readouterr().out


def test_an_unknown_patient_is_told_the_names():
    with pytest.raises(ValueError, match="choose one of healthy, lost decrement, early free"):
        clinic.examine("flu")


def test_the_beams_of_the_notebook_fork_die_and_copy():
    frames = record(beams.search(_solved("07.beam_step")), _solved("07.manager")(10, 4))
    assert frames[-1].error is None and set(frames[-1].state.tables) == {"B", "D", "E"}
    kinds = [frame.operation.kind for frame in frames[1:]]
    assert (kinds.count("fork"), kinds.count("release")) == (4, 2)
    assert sum(copy.num_slots for frame in frames for copy in frame.copies) == 7


def test_the_two_assumptions_enclose_the_papers_figures():
    saved = _solved("07.saved_share")
    prompts, outputs = paper.lengths(*paper.PROMPT), paper.lengths(*paper.OUTPUT)
    for n, reported in paper.SAVED.items():
        held = [(p, o, -(-(p + o) // paper.BLOCK_SIZE)) for p in prompts for o in outputs]
        equal = sum(saved(p, o, n, paper.BLOCK_SIZE) * blocks for p, o, blocks in held)
        equal /= sum(blocks for _, _, blocks in held)
        assert paper.saved_when_lengths_differ(n) < reported < equal < 1.3 * reported


def test_the_lengths_have_the_papers_means():
    for mean, spread in (paper.PROMPT, paper.OUTPUT):
        lengths = paper.lengths(mean, spread)
        assert sum(lengths) / len(lengths) == pytest.approx(mean, rel=0.02)


def test_the_packaged_recording_is_one_of_the_recordings():
    assert replaying.TRACE.read_bytes() == (TRACES / "trace_s1_n33_b2.jsonl").read_bytes()


@pytest.mark.parametrize("trace", sorted(TRACES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_the_solution_replays_every_recording(trace, monkeypatch):
    operations = tuple(replaying.read_trace(trace))
    monkeypatch.setattr(replaying, "operations", lambda: operations)
    result = replaying.Replay(_solved("08.engine_trace"))
    assert result.equal, result.telling()
    assert len(result.lines) == len(operations) - 1


def test_both_sides_of_the_first_difference_are_shown():
    wrong = next(w for w in get("08.engine_trace").wrong if w.name == "the block cached last")
    text = str(replaying.Replay(define(get("08.engine_trace"), wrong.source)))
    assert text.startswith("line 24, new r5 with 9 tokens: the first difference")
    assert "≠ blocks     engine [9, 10, 15, 16, 17]" in text and "yours  [11, 10, 15, 16, 17]" in text


def test_what_a_pool_raises_in_the_replay_is_told():
    def broken(self):
        return self.nothing

    parts = [_solved(f"08.{name}") for name in ("chain_hashes", "longest_prefix", "release")]
    result = replaying.Replay(pool_from(*parts, broken, _solved("08.touch")))
    assert "line 2, new r0 with 5 tokens: your code raised AttributeError" in result.telling()


def test_the_queue_after_a_request_of_55_tokens():
    pool = _solved("08.engine_trace")(11, 16)
    pool.new("A", range(55))
    assert pool.tables["A"] == [1, 2, 3, 4]
    pool.release("A")
    assert list(pool.free) == [4, 5, 6, 7, 8, 9, 10, 3, 2, 1]
    assert [block for block in range(11) if block in pool] == [1, 2, 3]
    assert "10 of 11 blocks free" in pool.picture().words()


def test_a_collision_is_a_miss_for_the_solution_and_another_prompt_for_the_trusting():
    first, second = (list(map(ord, text)) for text in ("dose 12 mg ok?", "dose 21 mg ok?"))
    pool = _solved("08.engine_trace")(12, 4, tiny_hash)
    assert pool.chain(first) == pool.chain(second) and first != second
    assert (pool.new("A", first), pool.new("B", second), pool.reads("B")) == (0, 4, second)
    pool.longest_prefix = lambda tokens, hashes: [pool.found[key][0] for key in hashes]
    pool.new("C", second)
    assert pool.reads("C") == first[:12] + second[12:]


def test_the_hash_takes_in_parent_tokens_and_extra():
    values = {
        sha256("root", [1, 2]),
        sha256("x", [1, 2]),
        sha256("root", [2, 1]),
        sha256("root", [1, 2], (1,)),
    }
    assert len(values) == 4


def test_a_figure_runs_a_learners_pool_and_names_what_a_trusting_one_reads():
    prompts = {"A": "dose 12 mg ok?", "B": "dose 21 mg ok?"}
    script = "append A; append B; append B 3; release A; append A"
    solved = _solved("08.engine_trace")
    figure = PrefixCacheStepper(prompts, solved(12, 4, tiny_hash), script=script, tokenize=letters)
    assert [frame.error for frame in figure.frames] == [None] * 6
    assert figure.frames[-1].found["A"] == 12
    trusting = solved(12, 4, tiny_hash)
    trusting.longest_prefix = lambda tokens, hashes: [
        trusting.found[key][0] for key in hashes if key in trusting.found
    ]
    figure = PrefixCacheStepper(prompts, lambda: trusting, script="append A; append B", tokenize=letters)
    assert "but block 2 holds the KV of other tokens" in figure.frames[-1].error
    assert figure.draw(2).count("by chance: a collision") == 2
