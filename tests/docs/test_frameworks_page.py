"""The numbers of the page on frameworks that are killed are those of the committed scorecards."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

from bench.run.architectures.registry import ARCHITECTURES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
WHOLE, ANEW, LIVE = "scorecard-simulated", "scorecard_begins_anew-simulated", "scorecard_live-qwen2.5-coder-1.5b-instruct"


def systems(report: str, world: str) -> dict[str, dict[str, Any]]:
    card = json.loads(gzip.decompress((ROOT / "reports" / report / "scorecard.json.gz").read_bytes()))
    return {row["system"]: row for row in card["rows"] if row["world"] == world}


def struck(row: dict[str, Any], by: str) -> dict[str, Any]:
    group: dict[str, Any]
    [group] = [group for group in row["struck"] if group["by"] == by]
    return group


def rows_under(text: str) -> list[list[str]]:
    """The cells of the first table below a text."""
    lines = iter(PAGE.split(text, 1)[1].splitlines())
    for line in lines:
        if line.startswith("| ---"):
            break
    rows = list[list[str]]()
    for line in lines:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def for_100(group: dict[str, Any]) -> str:
    """All damage for 100 failures, with its interval, as the page writes it."""
    value, low, high = (f"{group['harm']['any']['per_100'][name]:.0f}" for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def test_each_row_of_the_killed_systems_is_that_of_the_scorecard() -> None:
    shown = rows_under("**Results**, SIMULATED")
    assert shown
    for names, crashes, right, of_crashes, _, answers, of_answers in shown:
        for name in re.findall(r"`(\w+)`", names):
            row = systems(WHOLE, "contract_renewal")[name]
            killed, unheard = struck(row, "process:*"), struck(row, "tool:lost_ack")
            assert crashes == str(killed["failures"])
            assert right.startswith(f"{killed['right']['k']}/{killed['right']['n']} [")
            assert answers == f"{unheard['failures']}: {unheard['right']['k']}/{unheard['right']['n']}"
            assert (of_crashes, of_answers) == (for_100(killed), for_100(unheard)), name


def test_what_is_said_of_the_real_model_is_what_its_scorecard_counts() -> None:
    rows = systems(LIVE, "contract_renewal")
    assert rows.keys() == {"openai_loop", "langgraph_durable_sync_keys"}
    assert {(row["control"]["k"], row["control"]["n"]) for row in rows.values()} == {(0, 5)}
    assert "finished no renewal, so the run shows nothing about recovery" in TEXT


def test_the_page_on_packs_says_how_many_architectures_run_by_their_own_packages() -> None:
    count = {9: "Nine", 10: "Ten", 11: "Eleven"}[sum(bool(part.extra) for part in ARCHITECTURES)]
    page = (ROOT / "docs" / "packs.md").read_text(encoding="utf-8")
    assert f"{count} architectures run by [their own packages](frameworks.md)" in page
