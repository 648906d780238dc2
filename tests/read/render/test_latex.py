"""A table in LaTeX says what it says elsewhere, and every column and row of it is on a page that can be read."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from bench.read.render.cells import Cell, Number
from bench.read.render.escaping import escape_latex
from bench.read.render.latex import CELL, READABLE, latex, latex_document
from bench.read.render.table import Table
from tests.read.render.test_table import TABLE


def test_it_is_a_booktabs_table_with_everything_escaped() -> None:
    written = latex(TABLE)
    assert r"\caption{A \& B}" in written
    assert r"Tokens & 2.0 $\pm$ 1.0 [-0.5, 4.5]† & 703 $\pm$ 49 \\" in written
    assert r"Solved & 8/10 = 80.0\% [49.0\%, 94.3\%] & 100\% \\" in written
    assert written.index(r"\toprule") < written.index(r"\midrule") < written.index(r"\bottomrule")


def test_a_table_is_shrunk_to_the_page_and_one_that_is_wider_lies_on_its_side() -> None:
    assert latex(TABLE).count(r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%") == 1
    assert "landscape" not in latex(TABLE)
    wide = latex(Table("t", "T", tuple("abcde"), (("x" * 40,) * 5,)))
    assert wide.startswith("\\begin{landscape}\n\\begin{table}") and wide.endswith("\\end{table}\n\\end{landscape}\n")


def test_a_long_cell_is_broken_and_a_long_table_is_continued() -> None:
    rows = tuple((str(number), "many words " * 8) for number in range(30))
    written = latex(Table("t", "T", ("n", "words"), rows, ("a note",)))
    assert written.count(r"{l>{\raggedright\arraybackslash}p{5.5cm}}") == written.count(r"\begin{table}") == 2
    assert [number for number in range(30) if f"\n{number} & " not in written] == []
    assert written.count(r"\caption{T}") == written.count(r"\addtocounter{table}{-1}\caption{T (continued)}") == 1
    assert written.count("a note") == written.count(r"\label{tab:t}") == written.count("many words many words") / 30 / 4 == 1


def test_a_table_without_rows_is_a_table() -> None:
    assert latex(Table("t", "T", ("a",), ())).count(r"\begin{tabular}") == 1


def test_the_latex_document_warns_and_holds_every_table() -> None:
    document = latex_document("R_1", ["SIMULATED"], [TABLE, Table("other", "T", ("a",), ())])
    assert document.index(r"\label{tab:demo}") < document.index(r"\label{tab:other}") < document.index(r"\end{document}")
    assert document.index(r"R\_\allowbreak{}1") < document.index("SIMULATED") < document.index(r"\label{tab:demo}")
    assert "booktabs" in document.partition(r"\begin{document}")[0]


def test_no_character_that_means_something_to_latex_passes() -> None:
    assert escape_latex(r"\&%$#_{}~^|") == (
        r"\textbackslash{}\&\%\$\#\_\allowbreak{}\{\}\textasciitilde{}\textasciicircum{}\textbar{}"
    )


def test_a_first_cell_in_brackets_is_no_argument_of_the_line_break_before_it() -> None:
    assert r"{[x]} & {*y} \\" in latex(Table("t", "T", ("a", "b"), (("[x]", "*y"),)))


def test_what_all_rows_share_is_said_once_in_the_title() -> None:
    table = Table("t", "T", ("Scenario", "Trials"), (("demo", 1), ("demo", 2)))
    assert r"\caption{T: scenario demo}" in latex(table)


def rows_in(written: str) -> list[list[list[str]]]:
    """The cells of each part's head and rows."""
    parts = re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", written, re.DOTALL)
    return [[line.removesuffix(r" \\").split(" & ") for line in part.splitlines() if line.endswith(r" \\")] for part in parts]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 80))
def test_each_number_stands_once_behind_the_name_of_its_row_in_a_part_that_can_be_read(widths: list[int], height: int) -> None:
    columns = ("name", *(f"c{place}" + "x" * width for place, width in enumerate(widths)))
    places = range(len(widths))
    rows: list[tuple[Cell, ...]] = [(f"r{row}", *(Number(row + place / 100, 2) for place in places)) for row in range(height)]
    result: list[tuple[str, str, str]] = []
    for head, *body in rows_in(latex(Table("t", "T", columns, tuple(rows)))):
        assert head[0] == "name"
        assert sum(min(len(each), CELL) + 2 for each in head) <= READABLE
        result += [(row[0], *place) for row in body for place in zip(head[1:], row[1:], strict=True)]
    cells = [(f"r{row}", columns[1 + place], f"{row + place / 100:.2f}") for row in range(height) for place in places]
    assert sorted(result) == sorted(cells)
