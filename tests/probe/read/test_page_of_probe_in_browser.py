"""A probe's page in a real browser: nothing is cut off at 400 and 1,280 pixels, and verdicts can be read in both schemes.

`nox -s browser` runs these; they need a Chromium on the path.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import IN_A_BROWSER, launched
from made_probe import write

from bench.probe.read.page import page_of
from bench.probe.read.run import read_probe

pytestmark = IN_A_BROWSER
CONTRAST = """() => {
    const channels = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number)
    const light = colour => channels(colour).map(c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
        .reduce((sum, c, at) => sum + c * [.2126, .7152, .0722][at], 0)
    const paper = light(getComputedStyle(document.body).backgroundColor)
    return [...document.querySelectorAll('.verdict, .stages li, .note')].map(element => {
        const ink = light(getComputedStyle(element).color)
        return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05)
    })
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probe")
    path = folder / "probe.html"
    path.write_text(page_of(read_probe(write(folder / "shop-probe"))), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_a_page_fits_its_screen_and_its_verdicts_can_be_read(browser: Any, page: Path, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True)
    shown, complaints = context.new_page(), list[str]()
    shown.on("console", lambda message: complaints.append(message.text))
    shown.goto(page.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.locator("h1").bounding_box()["height"] <= 400
    cut = "(all) => all.filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.ariaLabel)"
    assert shown.locator(".scroll").evaluate_all(cut) == []
    assert min(shown.evaluate(CONTRAST)) >= 4.5
    assert complaints == []
    context.close()


def test_the_other_cells_open_on_a_click_without_a_script(browser: Any, page: Path) -> None:
    shown = browser.new_page()
    shown.goto(page.as_uri())
    hidden = shown.locator("#others .steps").first
    assert not hidden.is_visible()
    shown.locator("#others summary").first.click()
    assert hidden.is_visible()
    shown.close()
