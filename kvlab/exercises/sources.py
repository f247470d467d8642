"""The source behind an answer: whether it is still the stub, its text, and running such a text again."""

from __future__ import annotations

import inspect
import itertools
import linecache
import types
from collections.abc import Callable

_numbers = itertools.count()


def execute(source: str, namespace: dict) -> None:
    """Run the source in the namespace so that tracebacks and `inspect.getsource` see its lines."""
    name = f"<kvlab answer {next(_numbers)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace)


def source_of(function: Callable) -> str | None:
    """The function's own text, or None where Python cannot find it (typed at a bare prompt, made by exec)."""
    try:
        return inspect.cleandoc("\n" + inspect.getsource(function)) + "\n"
    except (OSError, TypeError):
        return None


def is_stub(answer: object, stub: str | None = None) -> bool:
    """Whether a function's body is only `...` (or `pass`), or what the stub's source compiles to."""
    if answer is None or answer is Ellipsis:
        return True
    code = getattr(inspect.unwrap(answer) if callable(answer) else answer, "__code__", None)
    if code is None:
        return False
    return _does_nothing(code) or (stub is not None and any(_alike(code, other) for other in _codes(stub)))


def _does_nothing(code: types.CodeType) -> bool:
    return (code.co_code, code.co_names) in [(c.co_code, c.co_names) for c in _codes(_NOTHING)] and all(
        constant is None or constant is Ellipsis or isinstance(constant, str) for constant in code.co_consts
    )


_NOTHING = """
def a():
    ...
def b():
    'doc'
    ...
def c():
    return ...
def d():
    'doc'
    return ...
"""


def _codes(source: str) -> list[types.CodeType]:
    try:
        module = compile(source, "<stub>", "exec")
    except SyntaxError:
        return []
    return [constant for constant in module.co_consts if isinstance(constant, types.CodeType)]


def _alike(one: types.CodeType, other: types.CodeType) -> bool:
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and [c for c in one.co_consts if not isinstance(c, types.CodeType)]
        == [c for c in other.co_consts if not isinstance(c, types.CodeType)]
    )
