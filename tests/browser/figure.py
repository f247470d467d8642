"""A stepper in the browser: what it shows, and waiting until it shows something else."""

from collections.abc import Callable

from playwright.sync_api import Locator


class Figure:
    """A stepper in a cell's output: its picture, its telling line, its buttons."""

    def __init__(self, poll: Callable, cell: Locator):
        self._poll = poll
        self.whole = cell.locator(".kvlab-stepper").first
        self.svg = self.whole.locator("svg[data-step]").first

    @property
    def step(self) -> int:
        return int(self.svg.get_attribute("data-step"))

    @property
    def telling(self) -> str:
        return self.whole.locator(".kvlab-telling").first.inner_text()

    def button(self, name: str) -> Locator:
        return self.whole.locator(f"button.kvlab-{name.lower()}")

    def wait_step(self, step: int, timeout: float = 15) -> None:
        seen = self._poll(lambda: self.step, lambda now: now == step, timeout)
        assert seen == step, f"the picture shows step {seen}, expected {step}"

    def wait_step_other_than(self, before: int, timeout: float = 15) -> int:
        now = self._poll(lambda: self.step, lambda step: step != before, timeout)
        assert now != before, f"the picture still shows step {before}"
        return now

    def wait_telling(self, fragment: str, timeout: float = 15) -> None:
        now = self._poll(lambda: self.telling, lambda text: fragment in text, timeout)
        assert fragment in now, f"the line says {now!r}, expected {fragment!r} in it"

    def wait_telling_other_than(self, before: str, timeout: float = 15) -> str:
        now = self._poll(lambda: self.telling, lambda text: text != before, timeout)
        assert now != before, f"the line still says {before!r}"
        return now
