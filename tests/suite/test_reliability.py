"""The reliability report counts what was tried, and names what does not hold."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reliability.kept import Guarded, Made, Measured, Taken, Tried, read, write
from reliability.load import OURS, Cell, bare, ours, serving
from reliability.measured import measured_in
from reliability.promises import EXAMPLES, PROMISES, ROOT
from reliability.report import page, upper
from scipy import stats

SLOW = Taken(0.2, 200, 4000, OURS, 1.9, 1.004, 0.02, 0.0013, 0, 98.5, 0.7)
TAKEN = [SLOW, *(dataclasses.replace(SLOW, who=who, wall=1.2, recorded=None, client=None) for who in ("openai", "aiohttp"))]


@given(st.integers(0, 30), st.integers(1, 3000))
def test_the_upper_limit_of_a_rate_is_where_so_few_failures_are_a_twentieths_chance(failures: int, tries: int) -> None:
    limit = upper(failures, tries)
    if failures >= tries:
        assert limit == 1.0
    else:
        assert stats.binom.cdf(failures, tries, limit) == pytest.approx(0.05)
    assert upper(0, 100) == pytest.approx(3 / 100, rel=0.02)


def test_what_was_kept_is_read_back_as_it_was(tmp_path: Path) -> None:
    kept = (Tried("sinks", 12, 0, ""), Tried("any file", 3, 1, "one, two: not here"))
    held = (Guarded("root", "nothing", "files", 40, 39, "os.link"),)
    write(tmp_path, Tried, kept)
    write(tmp_path, Taken, TAKEN)
    write(tmp_path, Guarded, held)
    assert (read(tmp_path, Tried), read(tmp_path, Taken), read(tmp_path, Guarded)) == (list(kept), TAKEN, list(held))
    assert read(tmp_path / "nowhere", Tried) == []


def test_the_page_counts_each_promise_and_names_what_did_not_hold_or_was_not_tried(tmp_path: Path) -> None:
    write(tmp_path, Tried, [Tried("sinks", 100, 0, ""), Tried("kills and disks", 50, 2, "test_read_only: root")])
    write(tmp_path, Taken, TAKEN)
    write(tmp_path, Guarded, [Guarded("root", "nothing", "files", 40, 39, "os.link")])
    write(tmp_path, Made, [Made("load", "2 cores", None), Made("promises", "4 cores", 9.0)])
    text = page(tmp_path)
    assert "- load: 2 cores\n- promises: 4 cores, load average 9 at the end\n\n" in text
    assert "| 100 | 0 | 2.95% |" in text and "| 50 | 2 |" in text and "| 4000 | 0 | 0.07% |" in text
    assert "With 200 calls in flight, answered after 0.2 s, the wall time was above the aim of 1.5." in text
    assert "Not tried on this machine, of kills and disks: test" in text
    assert "With every guard in force, as root, what got through: os.link." in text


def test_each_place_is_told_beside_what_is_promised_and_what_misses_it_is_named(tmp_path: Path) -> None:
    worst = [
        Measured("a grade", "processor", 9, 0.91),
        Measured("a grade", "peak", 9, 138.4),
        Measured("a bomb", "stall", 1, 0.24),
    ]
    write(tmp_path, Measured, worst)
    text = page(tmp_path)
    assert (
        "| Where | Tries | Processor s, at most 1 | Peak MiB, at most 200 | Stall s, at most 0.1 | Wait s, at most 1 | Kept |"
        in text
    )
    assert "| a grade | 9 | 0.91 | 138 |  |  | yes |" in text and "| a bomb | 1 |  |  | 0.24 |  | no |" in text
    assert "- a bomb: 0.24 s of stall, and 0.1 are promised.\n" in text and "- a grade" not in text


def test_what_tests_measured_is_the_most_of_each_place() -> None:
    case = '<testcase name="{}"><properties>{}</properties></testcase>'
    listed: tuple[tuple[str, dict[str, object]], ...] = (
        ("test_a[a text]", {"processor": 0.4, "tries": 3}),
        ("test_b[x]", {"place": "a reply", "peak": 120.5}),
        ("test_b[y]", {"place": "a reply", "peak": 90}),
        ("test_c", {}),
    )
    cases = [
        ElementTree.fromstring(
            case.format(name, "".join(f'<property name="{key}" value="{value}"/>' for key, value in properties.items()))
        )
        for name, properties in listed
    ]
    assert measured_in(cases) == [Measured("a text", "processor", 3, 0.4), Measured("a reply", "peak", 2, 120.5)]


def test_each_promise_has_tests_that_are_there() -> None:
    for test in (test for promise in PROMISES for test in promise.tests):
        file, _, name = test.partition("::")
        assert (ROOT / file).exists() and f"def {name}" in ((ROOT / file).read_text() if name else "def "), test


def test_the_examples_of_a_property_are_counted_as_hypothesis_tells_them() -> None:
    statistics = "    - Typical runtimes: ~ 0-8 ms\n    - 40 passing, 0 failing, and 3 invalid test cases\n"
    assert EXAMPLES.findall(statistics) == [("40", "0")]


@pytest.mark.endurance
def test_a_thousand_calls_in_flight_fail_by_nothing_of_ours_and_their_seconds_are_the_endpoints() -> None:
    cell = Cell(0.2, 1000, 1)
    with serving(cell.seconds) as url:
        taken, beside = ours(cell, url), bare("aiohttp", cell, url)
    assert (taken.errors, beside.errors) == (0, 0)
    assert taken.recorded and taken.recorded < taken.wall, "what a busy process adds is no part of a call"
