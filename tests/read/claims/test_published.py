"""The paper's figures are read whole, and each says where it stands."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.common.errors import ConfigError
from bench.read.analysis.claim import RateClaim
from bench.read.analysis.metrics import RETRY_TOKENS, SOLVED, costs
from bench.read.analysis.published import PUBLISHED_FILE, Published, load_published

SMALL = """
columns = {{ static = "Static" }}
paper = {{ title = "T", source = "S", model = "M", temperature = 0.0, runs = 10 }}
rows = {{ tokens = {{ measure = "tokens" }} }}
[[table]]
number = 1
scenario = "demo"
plan = "paper"
failure = "one field"
[table.cells]
tokens = {cells}
"""
GOOD = SMALL.format(cells='{ row = "Tokens", static = { mean = 2 }, monolithic = { mean = 1 } }').replace(
    'static = "Static"', 'static = "Static", monolithic = "Mono."'
)
CLAIM = """
[[claim]]
id = "one"
sentence = "s"
source = "s"
kind = "direction"
why = "w"
scenario = "demo"
row = "tokens"
measure = "tokens"
higher = "static"
lower = "monolithic"
"""
RATIO = CLAIM.replace('"direction"', '"ratio"').replace("higher", "of").replace("lower", "to")
RATE = """
[[claim]]
id = "two"
sentence = "s"
source = "s"
kind = "rate"
why = "w"
scenario = "demo"
architecture = "static"
counted = "wrong_answers"
"""


def test_every_cell_of_the_papers_tables_is_there() -> None:
    published = load_published()
    cells = [value for table in published.table for row in table.cells.values() for value in row.values.values()]
    assert len(cells) == 40, "seven rows, three columns, two tables, less the framework time of the monolithic"
    measures = {measure.name for measure in (*costs(), RETRY_TOKENS, SOLVED)}
    assert {name for table in published.table for name in table.cells} <= measures


def test_a_published_value_names_its_source() -> None:
    result = load_published().value("k8s_oomkill", "paper", "retry_tokens", "runtime_structured")
    assert result is not None
    assert (result.mean, result.sd) == (436.0, 132.0)
    assert result.source == "arXiv 2605.15425v1, Table 2, row 'Retry tokens', column 'RSTD'"


def test_the_published_savings_follow_from_the_published_means() -> None:
    """The abstract's percentages, recomputed: a slip of the pen in the file would show."""
    published = load_published()

    def retry(scenario: str, architecture: str) -> float:
        [plan] = {table.plan for table in published.table if table.scenario == scenario}
        result = published.value(scenario, plan, "retry_tokens", architecture)
        assert result is not None
        return result.mean

    for scenario, first, second, percent in (
        ("k8s_oomkill", "static", "monolithic", 80.5),
        ("multi_file_debugging", "static", "monolithic", 32.7),
        ("k8s_oomkill", "runtime_structured", "monolithic", -51.7),
        ("k8s_oomkill", "runtime_structured", "static", -73.2),
        ("multi_file_debugging", "runtime_structured", "monolithic", -34.6),
    ):
        change = 100 * (retry(scenario, first) / retry(scenario, second) - 1)
        assert change == pytest.approx(percent, abs=0.1)


def test_api_and_framework_time_add_up_to_the_published_latency() -> None:
    for table in load_published().table:
        for architecture in ("static", "runtime_structured"):
            parts = [table.cells[name].values[architecture].mean for name in ("api_seconds", "framework_seconds")]
            assert sum(parts) == pytest.approx(table.cells["latency_seconds"].values[architecture].mean, abs=0.015)


@pytest.mark.parametrize(
    ("scenario", "plan", "architecture"),
    [("other", "paper", "static"), ("k8s_oomkill", "none", "static"), ("k8s_oomkill", "paper", "other")],
)
def test_where_the_paper_says_nothing_there_is_no_value(scenario: str, plan: str, architecture: str) -> None:
    assert load_published().value(scenario, plan, "tokens", architecture) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "is not TOML"),
        ("", "paper: is missing"),
        (SMALL.format(cells='{ row = "Tokens", static = { mean = "many" } }'), "mean: must be a number, not 'many'"),
        (SMALL.format(cells='{ row = "Tokens", statik = { mean = 1 } }'), "'statik' stands not in"),
        (SMALL.format(cells='{ row = "Tokens", static = { mean = 1, sd = -1 } }'), "must be at least 0"),
        (GOOD.replace("rows = {", "monoliths = [] #"), r"what of ours is 'tokens' compared with\? \[rows.tokens\] is missing"),
        (GOOD.replace('measure = "tokens"', 'measure = "tokns"'), "unknown measure 'tokns': did you mean 'tokens'"),
        (GOOD + CLAIM.replace('measure = "tokens"', 'measure = "tokns"'), "unknown measure 'tokns': did you mean 'tokens'"),
        (GOOD + CLAIM + CLAIM, "two claims are called 'one'"),
        (GOOD + CLAIM.replace('"direction"', '"opinion"'), "direction"),
        (GOOD + CLAIM.replace('why = "w"', ""), "why: is missing"),
        (GOOD + CLAIM.replace("demo", "other"), "one: the tables have no 'tokens' of static on other"),
        (GOOD + CLAIM.replace('lower = "mono', 'lower = "poly'), "one: the tables have no 'tokens' of polylithic on demo"),
        (GOOD.replace("= 1 }", "= 0 }") + RATIO, "one: a ratio needs two published means that differ, neither of them 0"),
        (GOOD.replace("= 1 }", "= 2 }") + RATIO, "one: a ratio needs two published means that differ, neither of them 0"),
        (GOOD + RATE + "published = 0.5", "published"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "published.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as refused:
        load_published(path)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert PUBLISHED_FILE.is_file()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_published(tmp_path / "none.toml")


# What can be compared


def test_each_claim_says_why_it_can_be_compared_and_has_its_published_figure() -> None:
    """In the file itself: beside its sentence."""
    assert all(each["why"].strip() for each in tomllib.loads(PUBLISHED_FILE.read_text())["claim"])
    published = load_published()
    values = {claim.id: published.value_of(claim) for claim in published.claim}
    assert all(value is not None and value >= 0 for value in values.values())
    assert values["retry.rca.static-to-monolithic"] == pytest.approx(1632 / 904)
    assert Counter(claim.kind for claim in published.claim) == {"direction": 10, "ratio": 5, "rate": 6}


def test_a_sentence_is_measured_as_the_cells_are_that_it_speaks_of() -> None:
    published = load_published()
    for claim in published.claim:
        if not isinstance(claim, RateClaim):
            ours = published.rows[claim.row]
            table = next(table for table in published.table if table.scenario == claim.scenario)
            assert (claim.measure, claim.plan) == (ours.measure, table.plan if ours.struck else "none"), claim.id
            assert not claim.id.startswith("retry.") or claim.measure == "first_round_counted_tokens"


# Whatever is written

LINES = PUBLISHED_FILE.read_text().splitlines()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(LINES) - 1), line=st.one_of(st.just(None), st.text(max_size=30), st.sampled_from(LINES)))
def test_a_file_with_one_line_changed_is_read_or_refused_in_one_line(at: int, line: str | None, tmp_path: Path) -> None:
    """And what is read can be judged: every claim has its published figure."""
    path = tmp_path / "published.toml"
    path.write_text("\n".join([*LINES[:at], *([] if line is None else [line]), *LINES[at + 1 :]]))
    try:
        read = load_published(path)
    except ConfigError as refused:
        assert "\n" not in str(refused)
        return
    assert isinstance(read, Published)
    for claim in read.claim:
        read.value_of(claim)
