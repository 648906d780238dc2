"""Each number of README and the documents is held: by a row of a committed report, by a test, or by a listed reason."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from quoted_numbers import DOCUMENTS, ROOT, Section, reports_named_in, sections_of, unheld, untold

LISTED: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "numbers.toml").read_text(encoding="utf-8"))
REPORTS: Mapping[str, list[str]] = LISTED["reports"]
ENTRIES = [(document, entry) for document, entries in LISTED.items() if document != "reports" for entry in entries]
PAPER = "paper-qwen2.5-coder-1.5b-instruct"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_number_of_a_document_is_held_by_a_report_or_a_test(path: Path) -> None:
    name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    reports = reports_named_in(text) | set(REPORTS.get(name, ()))
    numbers_of = {section.heading: numbers for section in sections_of(text) if (numbers := unheld(section, reports))}
    listed = {entry["section"]: entry["numbers"].split() for document, entry in ENTRIES if document == name}
    assert numbers_of == listed, "say in tests/docs/numbers.toml what holds the numbers that differ"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_number_goes_with_its_mark_its_unit_its_n_and_its_verdict(path: Path) -> None:
    name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    reports = reports_named_in(text) | set(REPORTS.get(name, ()))
    assert [line for section in sections_of(text) for line in untold(section, reports)] == []


BOUNDARY = "A plain `commit` does more damage in `incident_response`:"


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("A repair of `monolithic` took 1,674 [1,613, 1,738]† tokens (9 trials).", []),
        ("A repair of `monolithic` took 1,674 [1,613, 1,738] tokens.", ["1,674[1,613,1,738]: †"]),
        ("A repair of `monolithic` took 1,674 [1,613, 1,738]† tokens (7 trials).", ["1,674[1,613,1,738]: no row has N 7"]),
        ("A repair of `monolithic` took 1,674% [1,613%, 1,738%]†.", ["1,674%[1,613%,1,738%]: the row has another unit"]),
        (f"{BOUNDARY} 2.09 [0.66, 3.87], over the pairs that could differ, which is inconclusive.", []),
        (f"{BOUNDARY} 2.09 [0.66, 3.87], over the pairs that could differ.", ["2.09[0.66,3.87]: inconclusive"]),
        (
            f"{BOUNDARY} 2.09 [0.66, 3.87] a trial. All is inconclusive.",
            ["2.09[0.66,3.87]: inconclusive", "2.09[0.66,3.87]: it is over the pairs that could differ"],
        ),
        ("`static` took 9 [8, 10] tokens, which no row has.", []),
    ],
)
def test_what_a_sentence_leaves_out_of_its_row_is_named(text: str, lacking: list[str]) -> None:
    [section] = sections_of(text)
    assert untold(section, {PAPER, "boundary_studies"}) == lacking


def test_what_is_listed_says_which_test_holds_it_or_why_none_need() -> None:
    for document, entry in ENTRIES:
        assert ("why" in entry) != ("held" in entry), (document, entry["section"])
        for test in entry.get("held", ()):
            file, _, function = test.partition("::")
            assert f"def {function or 'test_'}" in (ROOT / file).read_text(encoding="utf-8"), test


def test_no_number_was_read_off_a_run_by_hand() -> None:
    assert not [(document, entry["section"]) for document, entry in ENTRIES if entry.get("why", "").startswith("by hand")]


@pytest.mark.parametrize(
    ("text", "missed"),
    [
        ("A repair under `static` took 1,426 [1,382, 1,471] tokens.", []),
        ("A repair under `static` took 1,427 [1,382, 1,471] tokens.", ["1,427[1,382,1,471]"]),
        ("A repair on `k8s_oomkill` took 1,426 [1,382, 1,471] tokens.", ["1,426[1,382,1,471]"]),
        ("A repair under `static` took 1,426 tokens.", []),
        ("It solved 0/10 with `static`, 0 of 10 too, and 3 of 17.", ["3", "17"]),
        ("```\n357\n```\n<!-- 12 --> `static 3` in [arXiv 2605.15425](a.md#12), at 95% intervals", []),
        ("1. one\n2. two", []),
    ],
)
def test_a_number_is_missed_where_its_row_says_another_or_is_about_another_arm(text: str, missed: list[str]) -> None:
    [section] = sections_of(text)
    assert unheld(section, {PAPER}) == missed


def test_a_report_is_named_by_its_page_or_by_the_run_that_it_is_made_of() -> None:
    runs = "[a run](../results/substitution-qwen2.5-coder.zip), [without a report](results/none.zip)"
    text = f"[the report](../reports/{PAPER}/report.md), {runs}"
    assert reports_named_in(text) == {PAPER, "substitution-qwen2.5-coder"}


def test_two_sections_of_one_name_are_told_apart() -> None:
    assert [section.heading for section in sections_of("# A\n1\n## A\n2\n")] == ["", "A", "A (2)"]


def test_a_section_ends_where_the_next_begins() -> None:
    assert list(sections_of("# A\n1\n## B\n2"))[1:] == [Section("A", "\n1\n"), Section("B", "\n2")]
