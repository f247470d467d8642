"""How large a tensor a function makes on its way: what it would cost with a real sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _Watch(TorchFunctionMode):
    """Notes the largest storage that a call of torch made; views of what was passed in cost nothing."""

    def __init__(self, given: set[int]):
        super().__init__()
        self._given, self.largest = given, 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage.data_ptr() not in self._given:
                    self.largest = max(self.largest, storage.nbytes() // tensor.element_size())
        return result


def largest_made(function: Callable, *args: Any) -> int:
    """Call the function; returns the number of elements of the largest tensor that it made."""
    tensors = (argument for argument in args if isinstance(argument, torch.Tensor))
    with _Watch({tensor.untyped_storage().data_ptr() for tensor in tensors}) as watch:
        function(*args)
    return watch.largest
