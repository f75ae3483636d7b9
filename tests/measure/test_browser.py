"""The page of `measure` in a real browser: wide and narrow, light and dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shiftbook.economics.price_book import context_window, price_list
from shiftbook.measure.page import measure_page
from shiftbook.measure.session import measured
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip(MISSING)
    api = pytest.importorskip("playwright.sync_api", reason=MISSING)
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    long = session(
        [*growing([20_000 + 900 * n for n in range(100)]), row(40_000, 9_000, minute=130, line=200)]
    )
    other = session(growing([5_000 + 2_000 * n for n in range(30)], every=7))
    at = datetime(2026, 11, 30, tzinfo=UTC)
    told = [measured(each, lambda model, _: price_list(model, at), context_window) for each in (long, other)]
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(measure_page(told, command="shiftbook measure made", version="0"), encoding="utf-8")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_fits_and_can_be_read(browser: Any, page_file: Path, scheme: str, width: int) -> None:
    faults: list[str] = []
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    view.on("console", lambda message: faults.append(message.text))
    view.on("pageerror", lambda error: faults.append(str(error)))
    view.goto(page_file.as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    assert view.evaluate(CONTRAST) >= 4.5
    named = view.evaluate("[...document.querySelectorAll('svg[role=img]')].map(e => e.ariaLabel)")
    assert len(named) >= 6
    assert all(named)
    widths = view.evaluate("[...document.querySelectorAll('.plot svg')].map(e => e.clientWidth)")
    assert all(each > 150 for each in widths)
    assert faults == []
    view.close()
