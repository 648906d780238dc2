"""One corpus of hostile texts through everything that shows a text: it stays a text."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hostile import TEXTS
from records import experiment, run_of

from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError
from bench.common.escaping import escape_terminal
from bench.common.paths import named
from bench.read.render.drawing import blank, finish, names_below, style
from bench.read.render.escaping import escape_csv, escape_markdown
from bench.read.render.finding import SummaryFinding
from bench.read.render.labels import slug
from bench.read.render.table import Table, comma_separated, markdown
from bench.read.report.page import Page, Section, as_markdown
from bench.read.report.page_html import as_html
from bench.read.report.summary import Summary
from bench.read.report.written_report import report_of

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
each = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def table_of(text: str) -> Table:
    return Table("hostile", text, ("Architecture", text), ((text, 1), (text, 2)), (text,))


def page_of(text: str) -> Page:
    summary = Summary("a headline", text, (SummaryFinding(text, "hostile"),), (text,))
    return Page(text, (text,), summary, None, (("Run", text),), (Section("more", "More", (table_of(text),)),))


@each
def test_a_terminal_shows_it_to_the_letter_and_obeys_nothing_of_it(text: str) -> None:
    terminal = Terminal()
    terminal.file = io.StringIO()
    terminal.print(text)
    shown = terminal.file.getvalue()
    assert not STEERING.search(shown)
    assert shown.removesuffix("\n") == escape_terminal(text).expandtabs(8)


@each
def test_csv_has_it_in_its_field_and_no_spreadsheet_takes_it_for_a_formula(text: str) -> None:
    head, *rows = csv.reader(io.StringIO(comma_separated(table_of(text))))
    assert len(head) == 2 and [row[1] for row in rows] == ["1", "2"]
    for field in (head[1], rows[0][0]):
        assert not re.match(r"\s*[=+\-@]", field) and not STEERING.search(field)
        assert field.removeprefix("'") == escape_terminal(text).removeprefix("'")


OF_THE_PAGE = r'\(\[table\]\(#hostile\)\)|<a id="hostile"></a>|<!-- end of hostile -->'
"""The links and marks that a page makes itself, of a table's name."""


@each
def test_markdown_keeps_it_in_one_line_without_html_images_or_links(text: str) -> None:
    harmless = markdown(table_of("x")), as_markdown(page_of("x"))
    for written, other in zip((markdown(table_of(text)), as_markdown(page_of(text))), harmless, strict=True):
        assert written.count("\n") == other.count("\n")
        assert not STEERING.search(written)
        bare = re.sub(r"\\.", "", re.sub(OF_THE_PAGE, "", written))
        assert not re.search(r"<|`|!\[|\]\(|\]\[", bare), written
    rows = [line for line in markdown(table_of(text)).splitlines() if line.startswith("| ")]
    assert [len(re.findall(r"(?<!\\)\|", re.sub(r"\\\\", "", row))) for row in rows] == [3, 3, 3, 3]


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs if name != "class")))


@each
def test_a_page_has_the_elements_that_it_has_with_a_harmless_text(text: str) -> None:
    page = as_html(page_of(text), None)
    assert Elements(page).elements == Elements(as_html(page_of("harmless"), None)).elements
    assert not STEERING.search(page) and page.encode()


def test_a_figure_shows_them_all_and_is_an_image() -> None:
    short = [text[:20] for text in TEXTS.values()]
    with style():
        figure = blank(6.0, 3.0)
        figure.set_layout_engine("none")
        axes = figure.subplots()
        names_below(axes, short)
        axes.plot([0, 1], label=" ".join(short))
        axes.legend()
        picture = finish(figure, "hostile", " ".join(short), "")
    assert picture.png.startswith(b"\x89PNG") and picture.pdf.startswith(b"%PDF")


@each
def test_a_file_name_made_of_it_stays_in_its_folder(text: str) -> None:
    assert re.fullmatch(r"first_round-[A-Za-z0-9._-]{1,60}", slug("first_round", text)) and ".." not in slug("a", text)[:4]


@each
def test_a_folder_is_never_called_by_it(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        named(Path("results"), text)
    message = str(caught.value)
    assert "is no name for a folder in results" in message and "\n" not in message and len(message) < 250


@pytest.mark.parametrize("escape", [escape_terminal, escape_markdown, escape_csv])
def test_harmless_words_stay_as_they_are(escape: object) -> None:
    assert callable(escape) and escape("qwen2.5-coder (recorded:paper), 12.5 [1, 2]: ümlaut 図") == (
        "qwen2.5-coder (recorded:paper), 12.5 [1, 2]: ümlaut 図"
    )


@pytest.mark.usefixtures("undrawn")
def test_a_report_of_a_run_whose_names_are_hostile_is_written_whole(tmp_path: Path) -> None:
    named_so = "".join(text for name, text in TEXTS.items() if name not in ("long", "half a pair"))
    files = report_of(run_of(tmp_path / "run", [replace(each, model=named_so) for each in experiment()])).files
    assert all(re.fullmatch(r"[a-z]*/?[A-Za-z0-9_.+-]{1,200}", name) for name in files), list(files)
    for name, content in files.items():
        if not name.endswith((".png", ".html")):
            assert not STEERING.search(content.decode()), name
