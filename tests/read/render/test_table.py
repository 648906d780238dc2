"""A table says the same in Markdown and CSV, and never shows a number that does not exist."""

from __future__ import annotations

import csv
import io

import pytest

from bench.read.analysis.statistics import mean_of, share_of
from bench.read.render.cells import NARROW_NOTE, Cell, Estimate, PublishedNumber, Rate
from bench.read.render.table import Table, comma_separated, markdown

TABLE = Table(
    name="demo",
    title="A & B",
    columns=("Measure", "ours", "paper"),
    rows=(
        ("Tokens", Estimate(mean_of([1.0, 2.0, 3.0]), 1), PublishedNumber(703, 49)),
        ("Solved", Rate(share_of(8, 10)), PublishedNumber(1.0, percent=True)),
        ("Wrong", 2, PublishedNumber(None)),
    ),
    notes=("100% of it",),
)


def test_markdown_has_a_row_for_each_row_and_keeps_its_columns() -> None:
    table = Table("t", "T", ("a|b", "c"), (("x|y\nz", "`d` <e>"),), ("n*n",))
    assert markdown(table) == "### T\n\n| a\\|b | c |\n| --- | --- |\n| x\\|y z | \\`d\\` \\<e> |\n\n- n\\*n\n"


def test_what_all_rows_share_is_said_once_in_the_title_and_in_csv_in_each_row() -> None:
    rows = (("demo", "m (SIMULATED)", "static", 1), ("demo", "m (SIMULATED)", "monolithic", 1))
    table = Table("t", "T", ("Scenario", "Model", "Architecture", "Trials"), rows)
    assert table.shortened() == Table(
        "t", "T: scenario demo, model m (SIMULATED)", ("Architecture", "Trials"), (("static", 1), ("monolithic", 1))
    )
    assert markdown(table).startswith("### T: scenario demo, model m (SIMULATED)\n\n| Architecture | Trials |")
    assert comma_separated(table).splitlines()[1] == "demo,m (SIMULATED),static,1"


@pytest.mark.parametrize("rows", [(), (("demo", "a"),), (("demo", "a"), ("other", "a"))])
def test_a_table_keeps_a_column_that_only_one_row_has_or_in_which_rows_differ(rows: tuple[tuple[Cell, ...], ...]) -> None:
    table = Table("t", "T", ("Scenario", "Fault"), rows)
    assert table.shortened() == table


def test_a_terminal_says_in_the_title_what_a_sole_row_is_about() -> None:
    assert Table("t", "Costs", ("Pack", "N"), (("a", 1),)).shortened(1) == Table("t", "Costs: pack a", ("N",), ((1,),))


def test_csv_has_a_column_for_each_kind_of_number() -> None:
    rows = list(csv.DictReader(io.StringIO(comma_separated(TABLE))))
    tokens, solved, wrong = rows
    assert (float(tokens["ours"]), float(tokens["ours sd"]), tokens["ours n"]) == (2.0, 1.0, "3")
    assert (float(tokens["paper"]), float(tokens["paper sd"])) == (703.0, 49.0)
    assert (float(solved["ours"]), solved["ours k"], solved["ours n"], solved["ours sd"]) == (0.8, "8", "10", "")
    assert (wrong["ours"], wrong["paper"]) == ("2", "")


def test_csv_keeps_the_columns_of_a_table_without_rows() -> None:
    assert comma_separated(Table("t", "T", ("a", "b"), ())) == "a,b\n"


def test_markdown_of_a_long_table_shows_its_first_rows_and_says_which_file_has_all() -> None:
    long = Table("spent", "Spent", ("Model", "Tokens"), tuple((f"m{number // 3}", number) for number in range(5)), ("a note",))
    assert markdown(long, 5) == markdown(long)
    lines = markdown(long, 3).splitlines()
    assert [line for line in lines if line[:1] == "|"] == markdown(long).splitlines()[2:7]
    assert lines[-2:] == ["- a note", "- 3 of 5 rows are shown; a report that is made has all in tables/spent.md."]


def test_the_sign_of_an_interval_that_is_too_narrow_never_stands_without_its_meaning() -> None:
    few, many = (Table("t", "T", ("Tokens",), ((Estimate(mean_of(map(float, range(n)))),),), ("a note",)) for n in (3, 164))
    assert [markdown(few).count(sign) for sign in ("]† |", f"- {NARROW_NOTE}\n", "- a note\n")] == [1, 1, 1]
    assert "†" not in markdown(many) and many.footer == many.notes
