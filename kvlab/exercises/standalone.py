"""Turn an answer that lives in a notebook into text that runs on its own.

The text holds the answer's functions, the notebook's functions and constants that they use, and the
imports for the rest. What cannot be put into text is named in a sentence.
"""

from __future__ import annotations

import ast
import builtins
import dis
import importlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from kvlab.exercises.sources import source_of


class CannotStandAlone(Exception):
    """The message says which name is missing and what to do."""


def standalone_source(functions: list[Callable]) -> str:
    """Text that defines the functions in a fresh namespace.

    Raises:
        CannotStandAlone: a function's text cannot be found, or it uses something that only lives in this
            session.
    """
    imports: dict[str, None] = {}
    parts: dict[str, str] = {}
    for function in functions:
        _collect(function, imports, parts)
    return "\n".join(imports) + "\n\n\n" + "\n\n".join(parts.values())


def _collect(function: Callable, imports: dict[str, None], parts: dict[str, str]) -> None:
    name = function.__name__
    if name in parts:
        return
    text = source_of(function)
    if text is None or not text.lstrip().startswith(("def ", "@", "class ")):
        raise CannotStandAlone(
            f"the text of `{name}` cannot be found; define it with `def` in a cell of its own"
        )
    if getattr(function, "__closure__", None) and function.__code__.co_freevars != ("__class__",):
        free = ", ".join(function.__code__.co_freevars)
        raise CannotStandAlone(
            f"`{name}` uses {free} of a function around it; define it at the top of a cell"
        )
    parts[name] = ""  # claims its place before what it uses, so that recursion ends
    for used in [*_global_names(function), *_names_of_its_first_line(text, function.__globals__)]:
        _resolve(name, used, function.__globals__, imports, parts)
    del parts[name]
    parts[name] = text


def _global_names(function: Callable) -> Iterator[str]:
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        pending += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield instruction.argval


def _names_of_its_first_line(text: str, scope: dict) -> list[str]:
    """Names in decorators, defaults and annotations: needed when the text runs, not the function."""
    node = ast.parse(text).body[0]
    if not isinstance(node, ast.FunctionDef):
        return []
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    parts = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults, node.returns]
    parts += [argument.annotation for argument in arguments]
    inside = [name for part in parts if part for name in ast.walk(part) if isinstance(name, ast.Name)]
    return [name.id for name in inside if name.id in scope]


def _resolve(user: str, name: str, scope: dict, imports: dict[str, None], parts: dict[str, str]) -> None:
    if name not in scope:
        if hasattr(builtins, name):
            return
        raise CannotStandAlone(f"`{user}` uses the name `{name}`, which is not defined anywhere")
    value = scope[name]
    if isinstance(value, types.ModuleType):
        imports[f"import {value.__name__} as {name}"] = None
    elif (home := _importable(value)) is not None:
        imports[f"from {home[0]} import {home[1]} as {name}"] = None
    elif isinstance(value, types.FunctionType) and value.__name__ == name:
        _collect(value, imports, parts)
    elif _is_constant(value):
        parts.setdefault(name, f"{name} = {value!r}\n")
    else:
        raise CannotStandAlone(
            f"`{user}` uses `{name}`, which only lives in this notebook; import it, pass it in, or keep it "
            "on `self`"
        )


def _importable(value: Any) -> tuple[str, str] | None:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not name or "." in name or module in ("__main__", "kvlab_answer"):
        return None
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
    return (module, name) if found is value else None


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_constant(item) for item in value)
    return value is None or type(value) in (int, float, bool, str)
