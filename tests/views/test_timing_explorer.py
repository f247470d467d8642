"""The explorer: choosing, a live run that can be stopped, and what it says."""

from threading import Event

import pytest

from kvlab.recorded import recorded
from kvlab.views import TimingExplorer

from .reading import parse
from .test_timing_charts import ROWS, row

WAIT = 20  # seconds at most, for a thread that only hands over made-up rows


def test_it_shows_the_rows_of_the_chosen_sweep_and_measure():
    explorer = TimingExplorer([*ROWS, row("context", 256, paged=3)])
    assert explorer.sweep.options == ("batch", "context")
    assert "batch: 1, 2, 4" in explorer.words()
    before = explorer.picture.value
    explorer.sweep.value = "context"
    assert "context: 256" in explorer.words() and explorer.picture.value != before
    explorer.measure.value = "milliseconds"
    assert "milliseconds by context: 256. paged: 3.00" in explorer.picture.value
    parse(explorer.static())


def test_what_was_recorded_elsewhere_can_be_chosen_and_a_live_run_goes_on_beside_it():
    elsewhere = {"rows": [row("splits", 4, paged=8), row("batch", 9, paged=7)]}
    explorer = TimingExplorer(ROWS, recorded={"a card, 2026-01-01": elsewhere}, total=1)
    assert explorer.source.options == ("here", "a card, 2026-01-01")
    explorer.source.value = "a card, 2026-01-01"
    assert explorer.sweep.options == ("splits", "batch") and explorer.sweep.value == "batch"
    assert "batch: 9" in explorer.words()
    explorer.sweep.value = "splits"
    explorer._add(row("context", 64, paged=1))
    assert "splits: 4" in explorer.words() and explorer.sweep.options == ("splits", "batch")
    explorer.source.value = "here"
    assert explorer.sweep.options == ("batch", "context") and "batch: 1, 2, 4" in explorer.words()


def test_what_is_kept_with_the_package_can_be_shown():
    kept = recorded()
    assert kept, "at least the recording of one CPU"
    for label, document in kept.items():
        assert document["date"][:10] in label and document["machine"]["versions"]["torch"]
        explorer = TimingExplorer(recorded=kept)
        explorer.source.value = label
        for sweep in explorer.sweep.options:
            explorer.sweep.value = sweep
            parse(explorer.svg())


def test_a_document_of_the_bench_is_taken_as_it_is():
    assert TimingExplorer({"machine": {}, "rows": ROWS}).rows == ROWS


def test_without_a_run_there_is_nothing_to_start():
    explorer = TimingExplorer(ROWS)
    explorer.start()
    explorer.stop()
    explorer.wait()
    assert explorer.children[2].children == () and explorer.telling.value.count("</div>") == 1


def test_a_live_run_adds_and_replaces_rows_with_progress():
    fresh = [row("batch", 2, paged=1), row("dtype", "float32", paged=5)]
    explorer = TimingExplorer(ROWS, total=2, run=lambda stop: iter(fresh))
    assert "0 of 2" in explorer.progress.value and "Press Start" in explorer.telling.value
    explorer.start_button.click()
    explorer.wait(WAIT)
    assert "Done: 2 of 2 points measured." in explorer.telling.value
    assert 'value="2"' in explorer.progress.value and 'max="2"' in explorer.progress.value
    assert explorer.rows[1] is fresh[0] and explorer.rows[-1] is fresh[1]
    assert explorer.sweep.options == ("batch", "dtype") and explorer.sweep.value == "batch"
    assert "paged: 0.50, 2.00, 0.12" in explorer.picture.value


def test_from_nothing_the_first_row_is_shown():
    explorer = TimingExplorer(total=1, run=lambda stop: iter([row("dtype", "float32", paged=5)]))
    explorer.start()
    explorer.wait(WAIT)
    assert explorer.sweep.value == "dtype" and "dtype: float32" in explorer.words()


def test_stop_ends_the_run_and_keeps_what_is_there():
    at_second, go_on = Event(), Event()

    def run(stop):
        yield row("batch", 8, paged=1)
        at_second.set()
        go_on.wait(WAIT)
        if not stop():
            yield row("batch", 16, paged=1)

    explorer = TimingExplorer(ROWS, total=2, run=run)
    explorer.start()
    assert at_second.wait(WAIT)
    explorer.start()  # a second start while it runs does nothing
    explorer.stop_button.click()
    assert "Stopping after this round." in explorer.telling.value
    go_on.set()
    explorer.wait(WAIT)
    assert "Stopped: 1 of 2 points measured." in explorer.telling.value
    assert [one["value"] for one in explorer.rows] == [1, 2, 4, 8]


def test_an_error_in_the_run_is_told():
    def run(stop):
        yield row("batch", 8, paged=1)
        raise AssertionError("paged differs from contiguous SDPA by 1")

    explorer = TimingExplorer(ROWS, total=2, run=run)
    explorer.start()
    explorer.wait(WAIT)
    assert "The run ended: AssertionError: paged differs from" in explorer.telling.value


@pytest.mark.parametrize("name", ["start", "stop"])
def test_buttons_have_names_and_hooks(name):
    explorer = TimingExplorer(ROWS, total=1, run=lambda stop: iter(()))
    button = getattr(explorer, f"{name}_button")
    assert button.description == name.title() and f"kvlab-{name}" in button._dom_classes
