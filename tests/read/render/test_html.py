"""What a page shows of a table's cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.read.analysis.per_solved import PerSolved
from bench.read.analysis.statistics import Mean
from bench.read.render.cells import Cell, Estimate, Linked, Number, Spent
from bench.read.render.html import render
from bench.read.render.table import Table


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (163188, "163,188"),
        (999, "999"),
        (Number(1234.5678, 4), "1,234.5678"),
        (Number(0.12345, 5), "0.12345"),
        (Estimate(Mean(10, 1426.0, 1620.0, 1382.0, 10471.0)), "1,426 ± 1,620 [1,382,\N{NO-BREAK SPACE}10,471]†"),
        (Spent(PerSolved(20000.0, 4, 12, 5000.0, 4000.0, 6000.0)), "20,000/4 = 5,000 [4,000,\N{NO-BREAK SPACE}6,000]"),
        ("run-20261126", "run-20261126"),
        (Linked("run-20261126", ""), "run-20261126"),
    ],
)
def test_a_page_groups_the_digits_of_numbers_and_breaks_no_interval(cell: Cell, shown: str) -> None:
    table = Table("t", "a title", ("A", "B"), ((cell, cell),))
    page = render("table.html.j2", "", whole=table, table=table)
    assert page.count(f">{shown}</t") + page.count(f">\n{shown}\n</t") + page.count(f"{shown}\n</th>") >= 2


def test_a_sentence_sets_names_as_code_and_intervals_apart_and_escapes_all_else(tmp_path: Path) -> None:
    (tmp_path / "sentence.j2").write_text("{{ prose(text, names) }}")
    text = "On k8s with a <b>, a repair took 10 [9, 11] tokens with a.b, 12 with x & 9 [of 10] with a, as the paper."
    names = ("a", "a.b", "x", "paper", "k8", "amp", "lt")
    assert render("sentence.j2", "", folder=tmp_path, text=text, names=names) == (
        "On k8s with <code>a</code> &lt;b&gt;, <code>a</code> repair took 10 "
        '<span class="interval">[9,\N{NO-BREAK SPACE}11]</span> tokens with <code>a.b</code>, 12 with <code>x</code> '
        "&amp; 9 [of 10] with <code>a</code>, as the paper.\n"
    )
    assert render("sentence.j2", "", folder=tmp_path, text="none & [1, 2] of", names=()).startswith("none &amp; <span")
