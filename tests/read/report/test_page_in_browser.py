"""The report's page in a real browser, from a file: it sorts, opens trials, compares them, and asks nobody for anything.

`nox -s browser` runs these; they need a Chromium on the path.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import IN_A_BROWSER, launched
from records import called, experiment, recovered, trial, write_with_texts

import bench
from bench.read.analysis.results import Results
from bench.read.render.cells import Number
from bench.read.render.table import Table
from bench.read.report.page import page_of
from bench.read.report.page_html import as_html
from bench.read.report.trace import trace_of
from bench.read.report.written_report import report_of
from bench.record.events import Event
from bench.record.record import TrialRecord

pytestmark = IN_A_BROWSER

NARROW = {"width": 420, "height": 800}
PAPER = Path(__file__).parents[3] / "results" / "paper-qwen2.5-coder-1.5b-instruct"
PATIENCE = 60_000
"""Milliseconds before a step counts as hung; nothing is timed by it."""

EVIL = (
    "<script>document.title = 'run'</script></script><!-- </pre>"
    "<img src='http://127.0.0.1:9/leak' onerror='document.title = 1'>\u2028\u2029\ud800 &amp; \x00 end"
)
TEXTS = {"d1": "the prompt", "d2": EVIL, "d3": EVIL.replace("end", "cut")}
TABLE = Table(
    "demo",
    "Demo",
    ("Name", "Value"),
    (("nine", Number(9.0)), ("unknown", Number(None)), ("ten", Number(10.0)), ("minus", Number(-1.0))),
    section="study",
)
TALL = Table(
    "tall",
    "A title that is far too long for one line of a narrow screen, and that a reader sees whole",
    ("Name", *(f"Column {number}" for number in range(9))),
    tuple(("multi_file_debugging", *([Number(1234.0)] * 9)) for _ in range(60)),
    section="study",
)


def write_page(folder: Path, records: Sequence[TrialRecord]) -> Path:
    write_with_texts(folder / "run", records, TEXTS)
    run = bench.load_run(folder / "run")
    path = folder / "report.html"
    path.write_text(as_html(page_of(Results(run), [TABLE, TALL], []), trace_of(run)), encoding="utf-8")
    return path


def struck() -> list[Event]:
    """Recovered, and the fault is seen in the reply that was delivered."""
    return [replace(event, delivered="d3") if event == called(2, "b") else event for event in recovered()]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = [*experiment(("monolithic", "static", "mine"), repetitions=12)]
    records = [replace(record, events=tuple(struck())) if record.plan == "paper" else record for record in records]
    records = [replace(record, tokens=390) if record.plan == "paper" else record for record in records]
    return write_page(tmp_path_factory.mktemp("page"), records)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A tab of which every request and every complaint is kept, and in the end there are none."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    complaints, requests = list[str](), list[str]()
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    yield tab
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert complaints == []
    context.close()


def opened(page: Any, path: Path, anchor: str = "") -> Any:
    page.goto(path.as_uri() + anchor)
    page.wait_for_selector("#list tbody tr")
    return page


def open_trial(page: Any, plan: str, architecture: str = "static") -> None:
    chosen = page.locator("#list")
    chosen.get_by_label("Fault plan").select_option(plan)
    chosen.get_by_label("Architecture").select_option(architecture)
    chosen.locator("tbody button").first.click()
    page.wait_for_selector("#trial article")


def shown(page: Any, selector: str) -> list[str]:
    return [str(text) for text in page.locator(selector).all_text_contents()]


def test_a_table_sorts_by_its_numbers_with_what_is_unknown_last_and_back(page: Any, path: Path) -> None:
    opened(page, path)
    header = page.locator("#table-demo th", has_text="Value")
    names = "#table-demo tbody th"
    orders = []
    for _ in range(3):
        header.get_by_role("button").click()
        orders.append((header.get_attribute("aria-sort"), shown(page, names)))
    assert orders == [
        ("ascending", ["minus", "nine", "ten", "unknown"]),
        ("descending", ["ten", "nine", "minus", "unknown"]),
        ("none", ["nine", "unknown", "ten", "minus"]),
    ]


def test_a_trial_opens_as_a_timeline_with_all_that_is_known_of_each_call(page: Any, path: Path) -> None:
    opened(page, path)
    open_trial(page, "paper")
    pane = page.locator("#trial article").first
    assert pane.locator(".lane .name").all_text_contents() == ["a", "b"]
    assert pane.locator(".lane").nth(1).locator(".bar").count() == 2
    assert "planned → delivered → detected → recovered (call 2)" in pane.locator(".receipts").text_content()
    pane.locator(".bar.rejected").click()
    call = pane.locator("details[open]")
    call.locator("mark").first.wait_for()
    content = call.text_content()
    for text in ("rejected:schema", "Prompt, user", "the prompt", "as the model gave it", "100 in, 20 out", "delivered"):
        assert text in content
    assert call.locator("mark").all_text_contents() == ["end", "cut"]


def test_the_same_trial_of_another_architecture_stands_beside_it_and_either_can_be_changed(page: Any, path: Path) -> None:
    opened(page, path)
    open_trial(page, "paper")
    control, titles = page.locator("#trial .controls"), "#trial article h4"
    assert shown(page, titles) == ["static solved", "monolithic solved"]
    control.get_by_label("Architecture").select_option(label="mine")
    page.locator(titles, has_text="mine").wait_for()
    assert shown(page, titles) == ["mine solved", "monolithic solved"]
    control.get_by_label("Beside it").select_option(label="Another fault plan: none")
    page.locator("article:nth-child(2)", has_text="No fault was planned").wait_for()
    assert shown(page, titles) == ["mine solved", "mine solved"]
    control.get_by_label("Beside it").select_option(label="nothing")
    page.wait_for_function("document.querySelectorAll('#trial article').length === 1")


def test_whatever_a_model_says_stays_text(page: Any, path: Path) -> None:
    opened(page, path)
    title = page.title()
    open_trial(page, "none")
    page.locator("#trial article summary").first.click()
    reply = page.get_by_role("region", name="Reply", exact=True)
    assert reply.evaluate("(element, said) => element.textContent === JSON.parse(said)", json.dumps(EVIL))
    assert reply.locator("*").count() == 0
    assert page.title() == title


def test_no_request_can_leave_the_page(browser: Any, path: Path) -> None:
    context = browser.new_context()
    page = opened(context.new_page(), path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        blocked = page.evaluate(
            """async (address) => {
              const blocked = [];
              document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
              await fetch(address).catch(() => {});
              const image = new Image();
              await new Promise((done) => { image.onerror = done; image.src = address; });
              document.body.append(Object.assign(document.createElement("script"), { textContent: "document.title = 'run'" }));
              await new Promise((done) => setTimeout(done));
              return blocked;
            }""",
            f"http://127.0.0.1:{server.getsockname()[1]}/",
        )
        with pytest.raises(BlockingIOError):
            server.accept()
    assert blocked == ["connect-src", "img-src", "script-src-elem"]
    assert page.title() != "run"
    context.close()


def test_the_list_is_filtered_sorted_and_shown_a_part_at_a_time(page: Any, path: Path) -> None:
    listed = opened(page, path).locator("#list")
    assert listed.get_by_role("status").text_content() == "72 of 72 trials; 1 to 25 shown"
    listed.get_by_role("button", name="Later rows").click()
    assert listed.get_by_role("status").text_content() == "72 of 72 trials; 26 to 50 shown"
    for label in ("Scenario", "Architecture", "Fault plan", "Model", "Outcome", "Repetition"):
        listed.get_by_label(label).select_option(index=1)
    assert listed.get_by_role("status").text_content() == "1 of 72 trials; 1 to 1 shown"
    for label in ("Architecture", "Repetition"):
        listed.get_by_label(label).select_option("")
    header = listed.get_by_role("button", name="Repetition")
    header.click()
    header.click()
    assert header.locator("..").get_attribute("aria-sort") == "descending"
    # Only columns with several values are there: architecture, fault plan, repetition, tokens.
    assert shown(page, "#list tbody td:nth-child(4)")[:4] == ["12", "12", "12", "11"]


def test_the_keyboard_alone_is_enough(page: Any, path: Path) -> None:
    opened(page, path)
    keyboard = page.keyboard
    page.locator("#table-demo th button").nth(1).focus()
    keyboard.press("Enter")
    assert shown(page, "#table-demo tbody th")[0] == "minus"
    reach(page, "#list tbody button")
    keyboard.press("Enter")
    page.wait_for_selector("#trial article")
    assert page.evaluate("document.activeElement.tagName") == "H3", "the focus goes to what was opened"
    reach(page, "#trial .bar")
    keyboard.press("Enter")
    page.wait_for_selector("#trial details[open] pre")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    reach(page, "#trial pre")
    for _ in range(60):
        keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.textContent") == "Close the trial":
            break
    keyboard.press("Enter")
    assert page.locator("#trial article").count() == 0
    assert page.evaluate("document.activeElement.matches('#list tbody button')"), "the focus goes back to where it came from"


def reach(page: Any, selector: str) -> None:
    """Press Tab until the focus is on such an element."""
    for _ in range(100):
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached by Tab")


def test_an_address_names_the_trials_that_it_opens(page: Any, path: Path) -> None:
    opened(page, path)
    open_trial(page, "paper")
    address, titles = page.url, shown(page, "#trial h4")
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("#trial article")
    assert shown(page, "#trial h4") == titles


def test_the_back_button_leads_to_the_trial_before_and_then_to_the_list(page: Any, path: Path) -> None:
    opened(page, path)
    open_trial(page, "paper")
    titles = shown(page, "#trial h4")
    page.locator("#trial .controls").get_by_label("Beside it").select_option(label="nothing")
    page.locator("#trial article").nth(1).wait_for(state="detached")
    page.go_back()
    page.locator("#trial article").nth(1).wait_for()
    assert shown(page, "#trial h4") == titles
    page.go_back()
    page.locator("#trial article").first.wait_for(state="detached")
    assert page.locator("#list tbody tr").count() and not page.url.endswith("#trials")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_narrow_screen_and_dark_mode_is_dark(page: Any, path: Path, scheme: str) -> None:
    page.set_viewport_size(NARROW)
    page.emulate_media(color_scheme=scheme)
    opened(page, path)
    open_trial(page, "paper")
    page.locator("#trial article .bar.rejected").first.click()
    page.locator("#trial mark").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    brightness = page.evaluate("Number(/\\d+/.exec(getComputedStyle(document.body).backgroundColor)[0])")
    assert (brightness < 60) == (scheme == "dark")


def test_a_tall_table_scrolls_in_a_window_below_its_header(page: Any, path: Path) -> None:
    opened(page, path)
    window = page.locator("#table-tall")
    window.evaluate("(element) => element.scrollTo(0, 900)")
    assert window.bounding_box()["height"] < 900 < window.evaluate("(element) => element.scrollHeight")
    assert window.locator("thead th").first.bounding_box()["y"] == pytest.approx(window.bounding_box()["y"], abs=1)
    assert "(60 rows)" in window.locator("caption").text_content()


def test_a_narrow_screen_shows_a_table_s_whole_title_and_breaks_no_name(page: Any, path: Path) -> None:
    page.set_viewport_size(NARROW)
    opened(page, path)
    window = page.locator("#table-tall")
    window.evaluate("(element) => element.scrollTo(200, 0)")
    title, name = window.locator("caption span").bounding_box(), window.locator("tbody th").first.bounding_box()
    assert title["x"] >= 0 and title["x"] + title["width"] <= NARROW["width"]
    assert name["x"] >= 0 and name["height"] < 40


def test_on_a_narrow_screen_a_row_of_many_columns_is_a_card_whose_lines_name_their_columns(page: Any, path: Path) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    opened(page, path)
    windows = page.locator(".scroll").evaluate_all("(all) => all.map((each) => [each.id, each.scrollWidth - each.clientWidth])")
    assert [name for name, cut in windows if cut > 1] == []
    cells = page.locator("#table-tall tbody tr").first.locator("td")
    named = "(each) => [getComputedStyle(each, '::before').content, each.offsetTop]"
    lines = cells.evaluate_all(f"(all) => all.filter((each) => each.offsetHeight).map({named})")
    assert [name for name, _ in lines] == [f'"Column {number}"' for number in range(8)]  # a tick shows the columns after nine
    assert [top for _, top in lines] == sorted({top for _, top in lines})
    assert page.locator("h1").bounding_box()["height"] <= 400


def test_the_page_prints_whole_and_light(page: Any, path: Path) -> None:
    page.set_viewport_size({"width": 1050, "height": 700})
    opened(page, path)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    window = page.locator("#table-tall")
    assert window.locator("tbody tr").last.is_visible() and window.bounding_box()["height"] > 900
    assert window.evaluate("(element) => element.scrollWidth <= element.clientWidth")
    boxes = window.evaluate(
        "(element) => [...element.querySelectorAll('thead button')].map((each) => each.getClientRects().length)"
    )
    assert boxes and not any(boxes)  # Chromium repeats no head on a next page that has the box of a button in it


def test_the_tables_of_the_paper_s_report_fit_a_wide_screen_or_scroll_beside_a_fixed_column(page: Any, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    path = tmp_path / "report.html"
    path.write_bytes(report_of(bench.load_run(PAPER)).files["report.html"])
    opened(page, path)
    page.evaluate("document.querySelectorAll('details').forEach((more) => { more.open = true; })")
    wider = "document.querySelectorAll('.scroll')].filter((table) => table.scrollWidth > table.clientWidth + 1)"
    scrolling = page.evaluate(f"[...{wider}.map((table) => table.id.replace('table-', ''))")
    assert scrolling == ["claims-whole"]
    assert page.evaluate("getComputedStyle(document.querySelector('.scroll tbody th')).position") == "sticky"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).position") == "sticky"


def test_the_page_is_at_hand_with_5000_trials(page: Any, tmp_path: Path) -> None:
    records = [
        trial(name, plan, number) for number in range(1, 1251) for plan in ("none", "paper") for name in ("static", "mine")
    ]
    opened(page, write_page(tmp_path, records))
    assert page.locator("#list").get_by_role("status").text_content() == "5,000 of 5,000 trials; 1 to 25 shown"
    page.locator("#list").get_by_label("Repetition").select_option("1250")
    open_trial(page, "paper")
    assert "repetition 1250" in page.locator("#trial h3").text_content()
    assert page.locator("#trial article").count() == 2
