"""A page opens few tables and loses none: what it does not open stands folded by topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as some

from bench.read.render.finding import SummaryFinding
from bench.read.render.html import render
from bench.read.render.table import Table
from bench.read.render.table_part import OPEN_TABLES, SECTIONS
from bench.read.report.page import Page, Section
from bench.read.report.summary import Summary

VERDICTS = ("Claim", "Verdict", "What is said", "Ours", "Reason")


def page(tables: Sequence[Table]) -> Page:
    sections = tuple(
        Section(name, title, tuple(table for table in tables if table.section == name)) for name, title in SECTIONS.items()
    )
    return Page("a page", (), Summary("", "", (), ()), None, (), tuple(each for each in sections if each.tables))


@given(some.lists(some.tuples(some.sampled_from(list(SECTIONS)), some.booleans())))
def test_each_table_with_rows_stands_once_on_a_page_and_no_empty_one_does(kinds: list[tuple[str, bool]]) -> None:
    tables = [Table(f"t{place}", "", ("A",), (("x",),) * filled, section=name) for place, (name, filled) in enumerate(kinds)]
    made = page(tables)
    opened = Counter(table.name for section in made.opened for table in section.tables)
    further = Counter(table.name for section in made.further for table in section.tables)
    assert opened + further == Counter(table.name for table in tables if table.rows)
    assert all(len(section.tables) <= OPEN_TABLES[section.name] for section in made.opened)


def test_the_tally_of_the_papers_claims_is_told_once() -> None:
    findings = (SummaryFinding("They cost less.", "first_round"), SummaryFinding("Of the 2 claims 2 hold.", "claims"))
    without = replace(page([]), summary=Summary("", "", findings, ()))
    assert [each.table for each in without.findings] == ["first_round", "claims"]
    assert [each.table for each in replace(without, on_claims="2 of 2 claims stand.").findings] == ["first_round"]


def test_an_open_table_of_verdicts_begins_with_the_sentence_and_all_its_columns_stand_in_the_fold() -> None:
    table = Table("claims", "", VERDICTS, (("id.of", "holds", "it costs less", 3, "since"),), ("a", "b"), "verdicts")
    made = page([table])
    [[brief]], [[whole]] = ([section.tables for section in sections] for sections in (made.opened, made.further))
    assert (brief.columns, brief.rows) == (
        ("What is said", "Verdict", "Ours", "Claim"),
        (("it costs less", "holds", 3, "id.of"),),
    )
    assert (whole.columns, whole.name, whole.notes) == (VERDICTS, "claims-whole", ("a", "b"))


def test_a_verdict_has_a_side_that_its_colour_and_sign_show_and_a_number_stands_right() -> None:
    verdicts = ("holds", "contradicted", "counterexample found (2 of 3)", "decided by sizes, as claimed", "inconclusive")
    table = Table("claims", "", ("Claim", "Verdict", "N"), tuple(("c", verdict, 8) for verdict in verdicts))
    text = render("table.html.j2", "", whole=table, table=table)
    sides = ("stands", "falls", "falls", "sizes", "open")
    assert all(
        f'data-label="Verdict" class="verdict {side}" data-value="">{verdict}<' in text
        for side, verdict in zip(sides, verdicts, strict=True)
    )
    assert text.count('class="number" data-value="8">8<') == len(verdicts)
