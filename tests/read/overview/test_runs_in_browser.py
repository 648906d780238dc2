"""The index of runs in a real browser, from a file: it filters, sorts and opens without asking anybody for anything.

`nox -s browser` runs these; they need a Chromium on the path.
"""

from __future__ import annotations

from pathlib import Path

from chromium import IN_A_BROWSER, launched
from records import experiment, trial, write_run

from bench.read.overview.runs import index_of, index_page

pytestmark = IN_A_BROWSER


def test_the_rows_that_have_the_typed_words_are_shown_and_columns_sort(tmp_path: Path) -> None:
    write_run(tmp_path / "first", experiment())
    write_run(tmp_path / "second", [trial(model="other", repetition=n, id=f"o{n}") for n in range(1, 12)])
    path = tmp_path / "index.html"
    path.write_text(index_page(index_of(tmp_path, tmp_path)), encoding="utf-8")
    with launched() as browser:
        page = browser.new_page()
        heard = list[str]()
        page.on("console", lambda message: heard.append(message.text))
        page.on("request", lambda request: heard.append(request.url))
        page.goto(path.as_uri())
        shown = page.locator("#table-runs tbody tr:visible th")
        assert shown.all_text_contents() == ["second", "first"]
        page.locator("#table-runs thead button", has_text="Trials").click()
        assert shown.all_text_contents() == ["second", "first"]
        page.locator("#table-runs thead button", has_text="Trials").click()
        assert shown.all_text_contents() == ["first", "second"]
        page.get_by_label("Show rows with").fill("other 2nd")
        assert shown.all_text_contents() == []
        page.get_by_label("Show rows with").fill("OTHER sec")
        assert shown.all_text_contents() == ["second"]
        assert page.locator("#filters [role=status]").text_content() == "1 of 2 rows"
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.locator("#table-runs").evaluate("(each) => each.scrollWidth - each.clientWidth") <= 1
    assert heard == [path.as_uri()]
