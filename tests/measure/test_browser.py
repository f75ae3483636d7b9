"""The pages of `measure` in a real browser: wide and narrow, light and dark."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shiftbook.economics.price_book import context_window, price_list
from shiftbook.measure.page import measure_page
from shiftbook.measure.session import measured
from shiftbook.measure.survival import Part, Survived
from shiftbook.measure.survival_page import survival_page
from shiftbook.studies.identifiers import KINDS
from tests.measure.made import growing, row, session

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

MISSING = "NOT LOOKED AT IN A BROWSER: install Debian's chromium and the package playwright (extra `dev`)"

CONTRAST = """() => {
  const rgb = text => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
  const light = colour => {
    const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const [r, g, b] = rgb(colour).map(v => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const ratio = colour => {
    const ink = light(colour);
    return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
  };
  return Math.min(...[...document.querySelectorAll('h1,p,li,td,th,dt,dd,.plot span,.axis,.bars .value')]
    .map(each => ratio(getComputedStyle(each).color)));
}"""


UNREACHABLE = """() => {
  // A cell that is cut off must stand in something that can be scrolled to it.
  const out = [];
  for (const cell of document.querySelectorAll('td,th')) {
    let box = cell.parentElement, reached = false;
    for (; box && box !== document.body; box = box.parentElement)
      reached = reached || ['auto', 'scroll'].includes(getComputedStyle(box).overflowX);
    if (!reached && cell.getBoundingClientRect().right > window.innerWidth) out.push(cell.textContent);
  }
  return out;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip(MISSING)
    api = pytest.importorskip("playwright.sync_api", reason=MISSING)
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def measured_page() -> str:
    long = session(
        [*growing([20_000 + 900 * n for n in range(100)]), row(40_000, 9_000, minute=130, line=200)]
    )
    other = session(growing([5_000 + 2_000 * n for n in range(30)], every=7))
    at = datetime(2026, 11, 30, tzinfo=UTC)
    told = [measured(each, lambda model, _: price_list(model, at), context_window) for each in (long, other)]
    return measure_page(told, command="shiftbook measure made", version="0")


def survival_made() -> str:
    """Many compactions, one that kept all, one after which nothing was needed, and one very long name."""
    kept = {kind: Part(7_114, number) for number, kind in enumerate((*KINDS, "decisions"), start=1)}
    some: dict[str, Part] = {kind: Part(2 + at, at) for at, kind in enumerate(KINDS)}
    whole: dict[str, Part] = {kind: Part(9, 9) for kind in KINDS}
    none: dict[str, Part] = {kind: Part(0, 0) for kind in KINDS}
    found = [
        ("garden.jsonl.gz", [Survived(n, 40 * n, 1_234 * n, kept, some) for n in range(1, 12)]),
        (
            f"{'beds-' * 15}paths.jsonl",
            [Survived(1, 7, 90, kept, whole), Survived(2, 123_456, 1, kept, none)],
        ),
    ]
    return survival_page(found, sessions=29, command="shiftbook measure --survival made", version="0")


def survival_without() -> str:
    """No compaction at all."""
    return survival_page([], sessions=1, command="shiftbook measure --survival made", version="0")


PAGES: dict[str, tuple[Callable[[], str], int]] = {
    "measure": (measured_page, 6),
    "survival": (survival_made, 1),
    "survival, nothing compacted": (survival_without, 0),
}
"""Each page with its least number of charts."""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_fits_and_can_be_read(
    browser: Any, tmp_path: Path, name: str, scheme: str, width: int
) -> None:
    made, charts = PAGES[name]
    file = tmp_path / "page.html"
    file.write_text(made(), encoding="utf-8")
    faults: list[str] = []
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    view.on("console", lambda message: faults.append(message.text))
    view.on("pageerror", lambda error: faults.append(str(error)))
    view.goto(file.as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    assert view.evaluate(CONTRAST) >= 4.5
    paper = view.evaluate("getComputedStyle(document.body).backgroundColor")
    shade = sum(int(each) for each in re.findall(r"\d+", paper)[:3])
    assert (shade > 600) if scheme == "light" else (shade < 200)
    named = view.evaluate("[...document.querySelectorAll('svg[role=img]')].map(e => e.ariaLabel)")
    assert len(named) >= charts
    assert all(named)
    widths = view.evaluate("[...document.querySelectorAll('.plot svg')].map(e => e.clientWidth)")
    assert all(each > 150 for each in widths)
    hidden = view.evaluate(UNREACHABLE)
    assert hidden == []
    assert faults == []
    view.close()
