"""Measured rows to look through, and a live run that adds to them: progress bar, Start and Stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Event, Thread
from typing import Any

import ipywidgets

from kvlab.views.picture import Picture
from kvlab.views.text import escape
from kvlab.views.timing_charts import MEASURES, sweep_chart

HERE = "here"


class TimingExplorer(Picture):
    """Choose a sweep and a measure; Start measures the points that are still missing, Stop ends that.

    Args:
        rows: what has been measured here: rows, or a document of `python -m kvlab bench --out`.
        recorded: label -> document that was measured elsewhere (`kvlab.recorded`), to choose instead.
        total: how many points a live run has; 0 leaves out Start and Stop.
        run: called with `stop`, a function that says whether to stop; gives rows as they come. It is run in
            a thread of its own, so that the Stop button is heard.

    Hooks for tests and styles: classes kvlab-start, kvlab-stop, kvlab-progress, kvlab-telling.
    """

    def __init__(
        self,
        rows: Sequence[dict] | dict = (),
        *,
        recorded: Mapping[str, dict] | None = None,
        total: int = 0,
        run: Callable[[Callable[[], bool]], Iterable[dict]] | None = None,
    ):
        self.rows = list(rows["rows"] if isinstance(rows, dict) else rows)
        self._run, self._total, self._done = run, total, 0
        self._stopping, self._thread = Event(), None
        self.recorded = dict(recorded or {})
        self.source = ipywidgets.Dropdown(description="measured", options=(HERE, *self.recorded))
        self.sweep = ipywidgets.Dropdown(description="sweep", options=self._sweeps())
        self.measure = ipywidgets.Dropdown(description="measure", options=MEASURES)
        self.start_button = ipywidgets.Button(description="Start", tooltip="Start: measure here and now")
        self.stop_button = ipywidgets.Button(description="Stop", tooltip="Stop: keep what is measured")
        self.progress, self.telling = ipywidgets.HTML(), ipywidgets.HTML()
        self._style()
        live = [self.start_button, self.stop_button, self.progress] if run else []
        menus = [self.source] * bool(self.recorded) + [self.sweep, self.measure]
        choose = ipywidgets.HBox(menus, layout={"flex_flow": "row wrap"})
        super().__init__((choose, ipywidgets.HBox(live, layout={"flex_flow": "row wrap"}), self.telling))
        self.source.observe(self._choose_source, "value")
        self.sweep.observe(self._redraw, "value")
        self.measure.observe(self._redraw, "value")
        self.start_button.on_click(lambda _: self.start())
        self.stop_button.on_click(lambda _: self.stop())
        self._say("Press Start for a live run." if run else "")
        self._redraw()

    def _style(self) -> None:
        self.source.layout.width = "340px"
        for button in (self.start_button, self.stop_button):
            button.layout.width = "72px"
            button.add_class(f"kvlab-{button.description.lower()}")
        self.progress.add_class("kvlab-progress")
        self.telling.add_class("kvlab-telling")

    # -- the live run -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Measure in the background. A second start while one runs does nothing."""
        if self._run is None or (self._thread is not None and self._thread.is_alive()):
            return
        self._stopping.clear()
        self._done = 0
        self._thread = Thread(target=self._measure, name="kvlab-timing", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the live run after the round that it is in; what was measured stays."""
        if self._thread is not None and self._thread.is_alive():
            self._stopping.set()
            self._say("Stopping after this round.")

    def wait(self, seconds: float | None = None) -> None:
        """Until the live run has ended, or for so many seconds."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _measure(self) -> None:
        self._say("Measuring.")
        try:
            for row in self._rows():
                self._add(row)
        except Exception as error:  # a thread's error would be lost
            self._say(f"The run ended: {type(error).__name__}: {error}")
            return
        ended = "Stopped" if self._stopping.is_set() else "Done"
        self._say(f"{ended}: {self._done} of {self._total} points measured.")

    def _rows(self) -> Iterator[dict]:
        return iter(self._run(self._stopping.is_set))

    def _add(self, row: dict) -> None:
        """Take a row in; one of the same sweep and value is replaced."""
        same = [i for i, old in enumerate(self.rows) if _key(old) == _key(row)]
        if same:
            self.rows[same[0]] = row
        else:
            self.rows.append(row)
        self._done += 1
        self._say(f"Measured {row['sweep']} = {row['value']}.")
        if self.source.value == HERE:
            self._offer_sweeps()
            if row["sweep"] == self.sweep.value:
                self._redraw()

    # -- the picture --------------------------------------------------------------------------------------

    def chosen(self) -> list[dict]:
        """The rows of the chosen sweep, measured where it was chosen."""
        return [row for row in self._all_rows() if row["sweep"] == self.sweep.value]

    def svg(self, *, uid: str | None = None, standalone: bool = False) -> str:
        return sweep_chart(self.chosen(), self.measure.value).static()

    def words(self) -> str:
        return sweep_chart(self.chosen(), self.measure.value).alt

    def _redraw(self, _change: Any = None) -> None:
        self.picture.value = self.svg()

    def _say(self, sentence: str) -> None:
        bar = f'<progress max="{self._total}" value="{self._done}" style="width:12em"></progress>'
        self.progress.value = f"{bar} {self._done} of {self._total}" if self._total else ""
        self.telling.value = f'<div style="font-weight:600;line-height:1.5">{escape(sentence)}</div>'

    def _all_rows(self) -> list[dict]:
        return self.rows if self.source.value == HERE else self.recorded[self.source.value]["rows"]

    def _sweeps(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row["sweep"] for row in self._all_rows()))

    def _offer_sweeps(self) -> None:
        """The sweeps that there are rows of; the chosen one stays chosen if it is among them."""
        sweeps, chosen = self._sweeps(), self.sweep.value
        if sweeps != self.sweep.options:
            self.sweep.options = sweeps
            self.sweep.value = chosen if chosen in sweeps else next(iter(sweeps), None)

    def _choose_source(self, _change: Any) -> None:
        self._offer_sweeps()
        self._redraw()


def _key(row: dict) -> tuple:
    return row["sweep"], row["value"]
