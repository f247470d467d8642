"""Whatever a learner's code does, the caller gets an Outcome."""

import contextvars
import threading
import time

import pytest

from kvlab.exercises import guard


def spin():
    while True:
        pass


def spin_with_bare_except():
    while True:
        try:
            for _ in range(10**7):
                pass
        except:  # noqa: E722
            pass


def spin_with_nested_excepts():
    while True:
        try:
            while True:
                try:
                    sum(number for number in range(10**5))
                except BaseException:
                    continue
        except BaseException as error:
            str(error)


def spin_with_finally():
    while True:
        try:
            sum(range(1000))
        finally:
            continue  # noqa: B012


def count_for_ever():
    return sum(1 for _ in iter(int, 1))


def loop_in_a_generator():
    def numbers():
        while True:
            yield 1

    return list(zip(numbers(), iter(int, 1), strict=False))


@pytest.mark.parametrize(
    "endless",
    [
        spin,
        spin_with_bare_except,
        spin_with_nested_excepts,
        spin_with_finally,
        count_for_ever,
        loop_in_a_generator,
    ],
    ids=lambda function: function.__name__,
)
def test_an_endless_loop_is_stopped(endless):
    threads = threading.active_count()
    outcome = guard.run(endless, seconds=0.1)
    assert outcome.timed_out and not outcome.left_behind and not outcome.ok
    assert "a loop that never ends?" in outcome.telling()
    assert threading.active_count() == threads


def test_a_call_that_blocks_is_left_behind_with_a_sentence(monkeypatch):
    monkeypatch.setattr(guard, "PATIENCE", 0.1)
    released = threading.Event()
    outcome = guard.run(released.wait, 30, seconds=0.1)
    released.set()
    assert outcome.timed_out and outcome.left_behind
    assert "cannot be interrupted" in outcome.telling()


def test_a_late_end_of_a_thread_left_behind_changes_nothing(monkeypatch):
    monkeypatch.setattr(guard, "PATIENCE", 0.05)
    outcome = guard.run(lambda: time.sleep(0.4) or 42, seconds=0.05)
    time.sleep(0.6)
    assert outcome.value is None and outcome.timed_out


@pytest.mark.parametrize(
    "error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, StopIteration]
)
def test_any_exception_is_an_outcome(error):
    def learners():
        raise error("because")

    outcome = guard.run(learners)
    assert isinstance(outcome.error, error) and not outcome.ok
    assert error.__name__ in outcome.telling() and 'raise error("because")' in outcome.telling()


def test_recursion_without_end():
    def deeper(n):
        return deeper(n + 1)

    outcome = guard.run(deeper, 0)
    assert isinstance(outcome.error, RecursionError)
    assert "return deeper(n + 1)" in outcome.telling()


def test_the_line_is_the_learners_own_not_a_librarys():
    import json

    def learners():
        return json.loads("{")

    outcome = guard.run(learners)
    assert 'return json.loads("{")' in outcome.telling()


def test_an_error_whose_message_raises():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError

    def learners():
        raise Odd

    assert "its message could not be read" in guard.run(learners).telling()


def test_a_value_comes_back_and_context_variables_are_seen():
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)
    outcome = guard.run(lambda factor: factor * variable.get(), 6)
    assert outcome.ok and outcome.value == 42


def test_stop_button_becomes_an_outcome(monkeypatch):
    import _thread

    threading.Timer(0.2, _thread.interrupt_main).start()
    outcome = guard.run(spin, seconds=30)
    assert outcome.interrupted and not outcome.ok
    assert "stopped by you" in outcome.telling()


def test_call_raises_what_is_raised_and_turns_the_rest_into_time_up():
    with pytest.raises(KeyError, match="x"):
        guard.call({}.__getitem__, "x")
    assert guard.call(max, 1, 2) == 2

    def leave():
        raise SystemExit(1)

    with pytest.raises(guard.TimeUp, match="SystemExit"):
        guard.call(leave)
    with pytest.raises(guard.TimeUp, match="never ends"):
        guard.call(spin)
