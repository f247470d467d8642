"""Drives JupyterLab in a browser the way a learner does: menus, buttons, keys, typing.

What a notebook computed is judged on its model, never on the page: the page may lag behind.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Error, Locator, Page

from .figure import Figure
from .server import LabServer

OUT = Path(__file__).parent / "out"
PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"

_READY = """async () => {
  if (!window.jupyterapp) return "no application yet";
  await window.jupyterapp.restored;
  const panel = window.jupyterapp.shell.currentWidget;
  if (!panel || !panel.sessionContext) return "no notebook yet";
  await panel.context.ready;
  await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
  if (!kernel) return "no kernel yet";
  await kernel.info;
  return kernel.connectionStatus === "connected" ? "ready" : "kernel " + kernel.connectionStatus;
}"""

_CELLS = """() => {
  const model = window.jupyterapp.shell.currentWidget.content.model;
  return Array.from({length: model.cells.length}, (_, i) => {
    const cell = model.cells.get(i);
    const code = cell.type === "code";
    return {
      index: i, id: cell.id, code, source: cell.sharedModel.getSource(),
      tags: cell.getMetadata("tags") || [],
      count: code ? cell.executionCount : null,
      state: code ? cell.executionState : null,
      outputs: code ? cell.outputs.toJSON() : [],
    };
  });
}"""

_HEIGHT = """cells => {
  const boxes = Array.from(document.querySelectorAll(cells), cell => cell.getBoundingClientRect());
  return boxes[boxes.length - 1].bottom - boxes[0].top;
}"""

_KERNEL_STATUS = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"


@dataclass(frozen=True)
class Cell:
    """A cell as the notebook model has it."""

    index: int
    id: str
    code: bool
    source: str
    tags: list
    count: int | None
    state: str | None
    outputs: list

    @property
    def text(self) -> str:
        """What the cell printed, and the plain text of what it displayed."""
        parts = []
        for output in self.outputs:
            parts.append(_joined(output.get("text", "")))
            parts.append(_joined(output.get("data", {}).get("text/plain", "")))
        return "\n".join(part for part in parts if part)

    @property
    def error(self) -> str | None:
        for output in self.outputs:
            if output["output_type"] == "error":
                return f"cell {self.index}: {output['ename']}: {output['evalue']}"
        return None


def _joined(text) -> str:
    return text if isinstance(text, str) else "".join(text)


class Lab:
    """One browser page on one server, with one notebook open at a time."""

    def __init__(self, server: LabServer, page: Page):
        self.server = server
        self.page = page
        page.set_default_timeout(20_000)

    # --- opening and running -------------------------------------------------------------------

    def open(self, name: str, timeout: float = 90) -> None:
        """Opens a notebook afresh and waits until its kernel answers."""
        self.page.goto(self.server.notebook_url(name))
        seen = self.poll(lambda: self._evaluate(_READY), lambda state: state == "ready", timeout)
        assert seen == "ready", f"{name} is not ready after {timeout} s: {seen}\n{self.server.log()}"
        self.page.wait_for_selector(f"{PANEL} .jp-Cell")

    def run_all(self, timeout: float = 120) -> list[Cell]:
        """Run > Run All Cells. Pressed too early it is lost without a word: then it is pressed again."""
        for _ in range(3):
            self._menu("Run", "Run All Cells")
            if self.poll(self._anything_ran, bool, 4):
                break
        else:
            raise AssertionError("Run All Cells was pressed three times and nothing ran")
        return self.wait_idle(timeout)

    def wait_idle(self, timeout: float = 60) -> list[Cell]:
        """Waits until every code cell has run and the kernel is idle; returns the cells."""
        done = self.poll(self._all_ran, bool, timeout)
        waiting = [c.index for c in self.cells() if c.code and c.source.strip() and c.state != "idle"]
        assert done, f"cells {waiting} have not finished after {timeout} s"
        return self.cells()

    def cells(self) -> list[Cell]:
        return [Cell(**cell) for cell in self.page.evaluate(_CELLS)]

    def errors(self) -> list[str]:
        return [cell.error for cell in self.cells() if cell.error]

    def find(self, fragment: str, tag: str | None = None) -> Cell:
        """The first code cell whose source contains `fragment` (and that carries `tag`)."""
        for cell in self.cells():
            if cell.code and fragment in cell.source and (tag is None or tag in cell.tags):
                return cell
        raise AssertionError(f"no code cell contains {fragment!r}")

    # --- typing --------------------------------------------------------------------------------

    def type_into(self, cell: Cell, source: str) -> None:
        """Replaces a cell's text by the keyboard, as a learner would."""
        editor = self.cell(cell).locator(".cm-content")
        editor.scroll_into_view_if_needed()
        editor.click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(source)
        typed = self.poll(lambda: self.cells()[cell.index].source, lambda text: text == source, 10)
        assert typed == source, f"typed {source!r}, the cell holds {typed!r}"

    def run_cell(self, cell: Cell, timeout: float = 60) -> Cell:
        """Shift+Enter in a cell; returns it as it is afterwards."""
        editor = self.cell(cell).locator(".cm-content")
        editor.scroll_into_view_if_needed()
        editor.click()
        self.page.keyboard.press("Shift+Enter")
        before = cell.count

        def ran() -> bool:
            now = self.cells()[cell.index]
            return now.count not in (None, before) and now.state == "idle"

        assert self.poll(ran, bool, timeout), f"cell {cell.index} has not run after {timeout} s"
        return self.cells()[cell.index]

    # --- figures -------------------------------------------------------------------------------

    def cell(self, cell: Cell) -> Locator:
        return self.page.locator(f"{PANEL} .jp-Notebook .jp-Cell").nth(cell.index)

    def figure(self, cell: Cell) -> Figure:
        return Figure(self.poll, self.cell(cell))

    # --- looks ---------------------------------------------------------------------------------

    def theme(self, name: str) -> None:
        """`light` or `dark`."""
        theme = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}[name]
        self.page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme
        )
        wanted = "true" if name == "light" else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{wanted}']", state="attached")

    def screenshot(self, name: str) -> Path:
        """The whole notebook as one picture, however long."""
        OUT.mkdir(exist_ok=True)
        path = OUT / f"{name}.png"
        size = self.page.viewport_size
        height = self.page.evaluate(_HEIGHT, f"{PANEL} .jp-Notebook .jp-Cell")
        self.page.set_viewport_size({"width": size["width"], "height": min(int(height) + 160, 16_000)})
        self.page.locator(f"{PANEL} .jp-WindowedPanel-outer").first.evaluate("node => node.scrollTo(0, 0)")
        self.page.wait_for_timeout(500)
        self.page.locator(PANEL).first.screenshot(path=path)
        self.page.set_viewport_size(size)
        return path

    # --- waiting -------------------------------------------------------------------------------

    def _menu(self, menu: str, entry: str) -> None:
        self.page.locator(".lm-MenuBar-item", has_text=menu).filter(visible=True).first.click()
        self.page.locator(".lm-Menu-itemLabel", has_text=entry).filter(visible=True).first.click()

    def _anything_ran(self) -> bool:
        return any(c.count is not None or c.state == "running" for c in self.cells())

    def _all_ran(self) -> bool:
        if self.page.evaluate(_KERNEL_STATUS) != "idle":
            return False
        cells = [cell for cell in self.cells() if cell.code and cell.source.strip()]
        return all(cell.count is not None and cell.state == "idle" for cell in cells)

    def _evaluate(self, script: str) -> str:
        try:
            return self.page.evaluate(script)
        except Error as error:  # the page navigates while it loads
            return str(error)

    def poll(self, read, good, timeout: float):
        """Reads until the value is good or the time is up; returns the last value."""
        deadline = time.monotonic() + timeout
        value = read()
        while not good(value) and time.monotonic() < deadline:
            self.page.wait_for_timeout(100)
            value = read()
        return value
