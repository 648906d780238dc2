"""The paper's figures are read whole, and each says where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.analysis.claims.published import FILE, load_published
from bench.analysis.measures import COSTS, RETRY_TOKENS, SOLVED
from bench.errors import ConfigError

SMALL = """
columns = {{ static = "Static" }}
paper = {{ title = "T", source = "S", model = "M", runs = 10 }}
[[table]]
number = 1
scenario = "demo"
plan = "paper"
failure = "one field"
[table.cells]
tokens = {cells}
"""


def test_every_cell_of_the_papers_tables_is_there() -> None:
    published = load_published()
    cells = [value for table in published.table for row in table.cells.values() for value in row.values.values()]
    assert len(cells) == 40, "seven rows, three columns, two tables, less the framework time of the monolithic"
    measures = {measure.column for measure in (*COSTS, RETRY_TOKENS, SOLVED)}
    assert {name for table in published.table for name in table.cells} <= measures


def test_a_published_value_names_its_source() -> None:
    found = load_published().value("k8s_oomkill", "paper", "retry_tokens", "runtime_structured")
    assert found is not None
    assert (found.mean, found.sd) == (436.0, 132.0)
    assert found.source == "arXiv 2605.15425v1, Table 2, row 'Retry tokens', column 'RSTD'"


def test_the_published_savings_follow_from_the_published_means() -> None:
    """The abstract's percentages, recomputed: a slip of the pen in the file would show."""
    published = load_published()

    def retry(scenario: str, architecture: str) -> float:
        found = published.value(scenario, "paper", "retry_tokens", architecture)
        assert found is not None
        return found.mean

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
    ("text", "said"),
    [
        ("[", "is no TOML"),
        ("", "paper: is missing"),
        (SMALL.format(cells='{ row = "Tokens", static = { mean = "many" } }'), "mean: must be a number, not 'many'"),
        (SMALL.format(cells='{ row = "Tokens", statik = { mean = 1 } }'), "'statik' stands not in"),
        (SMALL.format(cells='{ row = "Tokens", static = { mean = 1, sd = -1 } }'), "must be at least 0"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "published.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as refused:
        load_published(path)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert FILE.is_file()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_published(tmp_path / "none.toml")
