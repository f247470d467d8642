"""The capacity calculator: what of a card is left for the KV cache, and what that holds."""

from typing import Any

import ipywidgets

from kvlab.model_shapes import MODELS
from kvlab.views.capacity_drawing import draw_capacity
from kvlab.views.capacity_sums import Question, sum_up, work_out
from kvlab.views.picture import Picture

_DTYPES = ("auto", "float16", "bfloat16", "fp8", "float32")
_BLOCK_SIZES = (1, 8, 16, 32, 64, 128, 256)
_FIELDS = {  # name: (description, width)
    "model": ("model", "220px"),
    "memory": ("memory", "170px"),
    "utilization": ("utilisation", "160px"),
    "weights": ("weights", "180px"),
    "rest": ("rest", "150px"),
    "kv_dtype": ("KV dtype", "180px"),
    "block_size": ("block size", "160px"),
    "max_len": ("longest request", "210px"),
}


class CapacityCalculator(Picture):
    """Weights, KV cache and the rest as bars; blocks, tokens and requests, every figure with its formula.

    Sizes are typed with their unit ("24GiB", "80GB"). An empty field of weights takes them from the model's
    name, at 2 bytes a parameter. What cannot be read, or does not fit, is said in the figure.

    Args:
        model: a key of `kvlab.model_shapes.MODELS`.
        memory, utilization, weights, rest, kv_dtype, block_size, max_len: the first values of the fields.

    Raises:
        KeyError: an unknown model. ValueError: first values that do not work out.
    """

    def __init__(self, model: str = "qwen2.5-7b", **values: Any):
        first = Question(model=model)._replace(**values)
        if model != Question().model and "weights" not in values:
            first = first._replace(weights="")
        texts = {name: str(value) for name, value in first._asdict().items() if name != "block_size"}
        self.question = first._replace(**texts)
        self.capacity = work_out(self.question)
        self._problem: str | None = None
        self.fields = {name: self._field(name) for name in _FIELDS}
        rows = (("model", "memory", "utilization", "kv_dtype"), ("weights", "rest", "block_size", "max_len"))
        super().__init__(tuple(ipywidgets.HBox([self.fields[name] for name in row]) for row in rows))
        self.add_class("kvlab-capacity")
        for name, field in self.fields.items():
            field.observe(lambda change, name=name: self._changed(name, change["new"]), "value")
        self._redraw()

    def svg(self, *, uid: str | None = None, standalone: bool = False) -> str:
        """The picture as it is now."""
        return draw_capacity(self.capacity, problem=self._problem, uid=uid, standalone=standalone)

    def words(self) -> str:
        """The answer in one line."""
        return sum_up(self.capacity) + "."

    def _field(self, name: str) -> ipywidgets.Widget:
        value, (description, width) = getattr(self.question, name), _FIELDS[name]
        options = {"model": list(MODELS), "kv_dtype": _DTYPES, "block_size": _BLOCK_SIZES}.get(name)
        if options is None:
            field = ipywidgets.Text(value, description=description, continuous_update=False)
        else:
            choices = list(dict.fromkeys([*options, value]))
            field = ipywidgets.Dropdown(options=choices, value=value, description=description)
        field.layout.width, field.style.description_width = width, "initial"
        field.add_class(f"kvlab-{name.replace('_', '-')}")
        return field

    def _changed(self, name: str, value: Any) -> None:
        self.question = self.question._replace(**{name: value})
        if name == "model" and self.fields["weights"].value:
            self.fields["weights"].value = ""  # the old model's weights; this comes back here
            return
        try:
            self.capacity, self._problem = work_out(self.question), None
        except ValueError as problem:
            self._problem = f"{problem} The picture still shows the last answer."
        self._redraw()

    def _redraw(self) -> None:
        self.picture.value = self.svg(uid=self._uid)
