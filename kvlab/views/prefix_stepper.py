"""The prefix cache, step by step: the widget."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import ipywidgets

from kvlab.block_manager import BlockManager
from kvlab.script import parse_script
from kvlab.views.prefix_drawing import draw_prefix, tell_prefix
from kvlab.views.prefix_layout import PrefixLayout
from kvlab.views.prefix_steps import PrefixFrame, record_prefixes
from kvlab.views.prompt_tokens import Token, Tokenize, smollm2, spelled, words
from kvlab.views.stepper import Stepper

PROMPTS = {
    "A": "You are a helpful assistant. Answer briefly. What is a KV cache?",
    "B": "You are a helpful assistant. Answer briefly. What is a block table?",
    "C": "Write a poem about the sea, the wind, and a boat that never sleeps.",
}
SCRIPT = "append A; release A; append B; release B; append C; release C; append A"
MOST_TOKENS = 512


class PrefixCacheStepper(Stepper):
    """Prompts, the chain of hashes over their blocks, hits and misses, and the free queue that is not empty.

    Type another prompt to see where its hashes change: from its first new token on, all of them.

    Args:
        prompts: name of the request -> its text, or its token ids; by default two that share a beginning and
            one that does not.
        script: "append A" lets A arrive with its prompt, "append A 2" lets a live A generate two tokens,
            "release A" ends it.
        manager: a manager with prefix caching (a learner's own too: `append(request_id, token_ids)` and
            the smallest manager's interface), which is copied and left as it is, or a function without
            arguments that makes one; by default a `BlockManager` of 7 blocks of 4.
        tokenize: a function text -> list of `Token(id, text)`; by default SmolLM2's tokens where the model
            is present, else one token a word.
        step: the step to show first.

    Raises:
        ValueError: no prompts, an empty prompt, or a script that cannot be read or names no prompt.
    """

    def __init__(
        self,
        prompts: Mapping[Hashable, str | Sequence[int]] | None = None,
        manager: Any | Callable[[], Any] | None = None,
        *,
        script: str = SCRIPT,
        tokenize: Tokenize | None = None,
        step: int = 0,
    ):
        prompts = PROMPTS if prompts is None else prompts
        self._script = parse_script(script)
        _validate(prompts, self._script)
        self._make = _factory(manager)
        all_text = all(isinstance(prompt, str) for prompt in prompts.values())
        self._tokenize = tokenize or (all_text and smollm2()) or words
        self.prompts = {rid: p if isinstance(p, str) else spelled(p) for rid, p in prompts.items()}
        self._problem: str | None = None
        self._record()
        names = list(self.prompts)
        edited = names[min(1, len(names) - 1)]
        self.who = ipywidgets.Dropdown(
            options=[(str(name), name) for name in names], value=edited, description="prompt of"
        )
        self.typed = ipywidgets.Text(self.prompts[edited], description="prompt", continuous_update=False)
        self.who.layout.width, self.typed.layout.width = "160px", "640px"
        for control, name in ((self.who, "who"), (self.typed, "typed")):
            control.add_class(f"kvlab-{name}")
        super().__init__(len(self._script) + 1, step=step, extra=(ipywidgets.HBox([self.who, self.typed]),))
        self.who.observe(lambda change: self._show_prompt(change["new"]), "value")
        self.typed.observe(lambda change: self.type(self.who.value, change["new"]), "value")

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a frame."""
        place = self._place(step)
        return draw_prefix(
            self._layout, self.frames, place, problem=self._problem, uid=uid, standalone=standalone
        )

    def tell(self, step: int) -> str:
        """The frame in one line."""
        return tell_prefix(self.frames, self._place(step))

    def type(self, request_id: Hashable, prompt: str) -> None:
        """Give a request another prompt and run the script again. What is no prompt is said in the figure."""
        if prompt == self.prompts[request_id] and self._problem is None:
            return
        self._problem = _problem(self._tokenize(prompt) if prompt.strip() else [])
        if self._problem is None:
            self.prompts[request_id] = prompt
            self._record()
        if self.who.value == request_id and self._problem is None:
            self.typed.value = prompt
        self.redraw()

    def _record(self) -> None:
        tokens = {rid: self._tokenize(prompt) for rid, prompt in self.prompts.items()}
        self.frames: list[PrefixFrame] = record_prefixes(tokens, self._script, self._make())
        self._layout = PrefixLayout(self.frames)

    def _place(self, step: int) -> int:
        # A run that went wrong has fewer frames than the script has steps.
        return min(step, len(self.frames) - 1)

    def _show_prompt(self, request_id: Hashable) -> None:
        self._problem = None
        self.typed.value = self.prompts[request_id]
        self.redraw()


def _problem(tokens: Sequence[Token]) -> str | None:
    if not tokens:
        return "An empty prompt has no tokens: type at least one word."
    if len(tokens) > MOST_TOKENS:
        return f"That prompt has {len(tokens)} tokens: type at most {MOST_TOKENS}."
    return None


def _factory(manager: Any) -> Callable[[], Any]:
    if manager is None:
        return lambda: BlockManager(7, 4, prefix_caching=True)
    if isinstance(manager, type) or (callable(manager) and not hasattr(manager, "block_size")):
        return manager
    return lambda: deepcopy(manager)


def _validate(prompts: Mapping, script: Sequence) -> None:
    if not prompts:
        raise ValueError('nothing to draw: give prompts such as {"A": "You are a helpful assistant."}.')
    for rid, prompt in prompts.items():
        if not len(prompt):
            raise ValueError(f"the prompt of {rid!r} is empty: it needs at least one token.")
    for operation in script:
        if operation.kind not in ("append", "release"):
            raise ValueError(f"this figure knows append and release, not {operation.kind}.")
        if operation.request_id not in prompts:
            names = ", ".join(map(str, prompts))
            raise ValueError(f"the script names {operation.request_id}, but the prompts are of {names}.")
