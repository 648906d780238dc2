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
    shown = rows_under("**Measured**, SIMULATED")
    assert shown
    for names, crashes, right, of_crashes, _, answers, of_answers in shown:
        for name in re.findall(r"`(\w+)`", names):
            row = systems(WHOLE, "contract_renewal")[name]
            killed, unheard = struck(row, "process:*"), struck(row, "tool:lost_ack")
            assert crashes == str(killed["failures"])
            assert right.startswith(f"{killed['right']['k']}/{killed['right']['n']} [")
            assert answers == f"{unheard['failures']}: {unheard['right']['k']}/{unheard['right']['n']}"
            assert (of_crashes, of_answers) == (for_100(killed), for_100(unheard)), name


def test_what_is_said_of_the_incidents_is_what_their_scorecards_count() -> None:
    anew = [struck(row, "process:*") for row in systems(ANEW, "incident_response").values()]
    [(of_all, n)] = {(for_100(killed), killed["failures"]) for killed in anew}
    assert f"keep nothing damage {of_all} effects for 100 crashes (N = {n})" in TEXT
    kept = sorted(
        (for_100(killed), killed["failures"])
        for name, row in systems(WHOLE, "incident_response").items()
        if name in ("langgraph_durable", "pydantic_ai_dbos", "openai_agents_durable", "autogen_durable")
        for killed in [struck(row, "process:*")]
    )
    assert f"without keys damage {kept[0][0]} to {kept[-1][0]} (N = {kept[0][1]} each)" in TEXT
    assert len(kept) == 4 and len({failures for _, failures in kept}) == 1
    assert not any(
        struck(row, "tool:lost_ack")["right"]["k"]
        for card in (ANEW, WHOLE)
        for row in systems(card, "incident_response").values()
    )
    rights = {
        f"{struck(row, 'process:*')['right']['k']}/{struck(row, 'process:*')['right']['n']} ["
        for row in systems(ANEW, "incident_response").values()
    }
    assert all(right in TEXT for right in rights)


def test_all_kills_came_and_all_logs_agree() -> None:
    kills = trials = 0
    for report, world in ((WHOLE, "contract_renewal"), (WHOLE, "incident_response"), (ANEW, "incident_response")):
        for row in systems(report, world).values():
            if (report, world) == (WHOLE, "incident_response") and row["system"] in systems(ANEW, world):
                continue
            kills += struck(row, "process:*")["failures"]
            trials += row["trials"]
            assert row["control"]["rate"] == 1.0
            assert row["own_log"]["k"] == row["own_log"]["n"] == row["trials"]
            assert row["two_counts_agree"]["k"] == row["trials"]
    assert f"All {kills:,} kills that were due came. In each of the {trials:,} trials" in TEXT


def test_what_is_said_of_keys_and_of_langgraphs_checkpoints_is_what_the_scorecards_count() -> None:
    for row in systems("scorecard_one_customer-simulated", "contract_renewal").values():
        if row["system"].endswith("_keys"):
            assert struck(row, "process:*")["harm"]["any"]["effects"] == 0 and struck(row, "process:*")["failures"] == 27

    def doubled(point: str) -> list[str]:
        worlds = (systems(WHOLE, world)["langgraph_durable"] for world in ("contract_renewal", "incident_response"))
        return [f"{struck(row, f'process:{point}')['harm']['doubled']['per_100']['value']:.0f}" for row in worlds]

    assert doubled("unacknowledged") == doubled("unrecorded")
    assert "{} effects of renewals are doubled, and {} of incidents".format(*doubled("unrecorded")) in TEXT
    assert "at `recorded` {} and {} are doubled".format(*doubled("recorded")) in TEXT


def test_what_is_said_of_the_real_model_is_what_its_scorecard_counts() -> None:
    rows = systems(LIVE, "contract_renewal")
    shown = {names.strip("`"): crashes for names, _, crashes, *_ in rows_under("**On a real model**")}
    assert shown.keys() == rows.keys()
    planned = delivered = left_out = trials = agreed = 0
    for name, row in rows.items():
        [kills] = [receipt for receipt in row["receipts"] if receipt["by"] == "process:*"]
        planned, delivered = planned + kills["planned"], delivered + kills["delivered"]
        left_out, trials, agreed = left_out + kills["not_applicable"], trials + row["trials"], agreed + row["own_log"]["k"]
        assert (row["control"]["k"], row["control"]["n"]) == (0, 5)
        # The two points brought the same replies: the page counts their trials once.
        assert shown[name] == str(kills["delivered"] // 2)
    assert f"agree in {agreed} of {trials} trials. {delivered} of {planned} kills came; {left_out} were not applicable" in TEXT


def test_the_page_on_packs_says_how_many_architectures_run_by_their_own_packages() -> None:
    count = {9: "Nine", 10: "Ten", 11: "Eleven"}[sum(bool(part.extra) for part in ARCHITECTURES)]
    page = (ROOT / "docs" / "packs.md").read_text(encoding="utf-8")
    assert f"{count} architectures run by [their own packages](frameworks.md)" in page
