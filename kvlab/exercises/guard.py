"""Run a learner's code so that nothing it does can hang the notebook or throw at the reader.

The code runs in a thread of its own while the caller waits. When its time is up, `Stopped` is raised
inside it, again and again until it ends. A call that blocks in C (a sleep, a lock) sees the exception only
when it returns; such a thread is left behind, and the caller goes on with a sentence.
"""

from __future__ import annotations

import _thread
import contextvars
import ctypes
import linecache
import os
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

SECONDS = 3.0  # a right answer takes microseconds; the rest is for a busy machine
BUSY = 4  # when other programs take the processor, wait up to this many times as long
SLICE = 0.05  # the stop button is noticed between two slices
PATIENCE = 2.0  # how long to go on raising Stopped before the thread is left behind


class Stopped(SystemExit):
    """Raised inside the learner's code when its time is up.

    A SystemExit, because a raw thread that ends with one says nothing. Making one takes a moment, so that
    the next one is already waiting when a bare `except:` has caught this one: it then strikes inside the
    handler, and the loop around it ends. (The pause is a C function on purpose: no Python code runs in
    which it could strike.)
    """

    __init__ = staticmethod(partial(time.sleep, 0.002))


@dataclass
class Outcome:
    """How a guarded call ended: a value, an error, or neither (`timed_out`, or stopped by the reader)."""

    value: Any = None
    error: BaseException | None = None
    timed_out: bool = False
    left_behind: bool = False
    interrupted: bool = False
    seconds: float = SECONDS

    @property
    def ok(self) -> bool:
        return self.error is None and not self.timed_out and not self.interrupted

    def telling(self) -> str:
        """What went wrong, as the end of a sentence that starts with the name of what was called."""
        if self.interrupted:
            return "was stopped by you before it returned"
        if self.timed_out:
            if self.left_behind:
                return (
                    f"did not return within {self.seconds:g} s and cannot be interrupted (a sleep? a lock?), "
                    "so it was left behind; restart the kernel to end it"
                )
            return f"did not return within {self.seconds:g} s and was stopped (a loop that never ends?)"
        return f"raised {describe(self.error)}"


def run(function: Callable, *args: Any, seconds: float | None = None, **kwargs: Any) -> Outcome:
    """Call `function` in its own thread for at most `seconds`; never raises, whatever the function does."""
    seconds = SECONDS if seconds is None else seconds
    outcome = Outcome(seconds=seconds)
    finished = _thread.allocate_lock()
    finished.acquire()
    context = contextvars.copy_context()
    call = partial(context.run, partial(function, *args, **kwargs))
    thread = _thread.start_new_thread(_work, (call, outcome, finished))
    try:
        done = _wait(finished, seconds)
    except KeyboardInterrupt:
        done, outcome.interrupted = False, True
    if done:
        return outcome
    ended = _stop(thread, finished)
    # A new object: a thread that was left behind may still write into the old one.
    return Outcome(
        timed_out=not outcome.interrupted,
        interrupted=outcome.interrupted,
        left_behind=not ended,
        seconds=seconds,
    )


class TimeUp(RuntimeError):
    """A guarded call did not come back in time."""


def call(function: Callable, *args: Any) -> Any:
    """Like `function(*args)`, exceptions included; TimeUp after a second or for what would end the kernel."""
    outcome = run(function, *args, seconds=1.0)
    if outcome.error is None and not outcome.ok:
        raise TimeUp(f"{getattr(function, '__name__', 'the call')} {outcome.telling()}")
    if isinstance(outcome.error, Exception):
        raise outcome.error
    if outcome.error is not None:
        raise TimeUp(f"{getattr(function, '__name__', 'the call')} {outcome.telling()}") from outcome.error
    return outcome.value


def _work(call: Callable, outcome: Outcome, finished: Any) -> None:
    try:
        outcome.value = call()
    except BaseException as error:
        outcome.error = error
    finally:
        finished.release()


def _wait(finished: Any, seconds: float) -> bool:
    """Whether the thread ended in time, counted in what this process computed: a busy machine is no loop."""
    began, computed = time.monotonic(), time.process_time()
    while not finished.acquire(timeout=SLICE):
        spent = time.monotonic() - began
        if spent > seconds * BUSY or (spent > seconds and time.process_time() - computed > seconds * 0.8):
            return False
    return True


def _stop(thread: int, finished: Any) -> bool:
    """Raise Stopped in the thread until it has ended; False if it has not within PATIENCE seconds."""
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raise_in.argtypes, raise_in.restype = (ctypes.c_ulong, ctypes.py_object), ctypes.c_int
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if raise_in(thread, Stopped) == 0 or finished.acquire(timeout=0.0005):
            return True
    return False


_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = tuple(
    {
        os.path.abspath(sysconfig.get_path(name)) + os.sep
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)


def learners_line(error: BaseException) -> str | None:
    """The innermost line of the traceback that is the learner's own, as "line 3, `return x[0]`"."""
    found, trace = None, error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith((_OURS, *_LIBRARIES, "<frozen", "<__array")):
            found = (name, trace.tb_lineno)
        trace = trace.tb_next
    if found is None:
        return None
    text = linecache.getline(*found).strip()
    return f"line {found[1]}" + (f", `{text}`" if text else "")


def describe(error: BaseException) -> str:
    """An exception as "IndexError: list index out of range (line 3, `return x[0]`)"."""
    try:
        message = str(error)
    except BaseException:
        message = "its message could not be read"
    if isinstance(error, KeyError) and len(error.args) == 1:
        message = str(error.args[0])
    message = message if len(message) <= 200 else message[:200] + " ..."
    line = learners_line(error)
    return type(error).__name__ + (f": {message}" if message else "") + (f" ({line})" if line else "")
