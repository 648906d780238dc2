"""Each cell of the paper's tables beside ours, counted once more from the raw events of the recordings. Nothing of `bench` is
imported: a slip in how it counts would show."""

from __future__ import annotations

import json
import math
import re
import statistics
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
ARCHITECTURES = ("monolithic", "static", "runtime_structured")
COUNTED = {
    "multi_file_debugging": {"static": ("fix_generation", "validation"), "runtime_structured": ("fix_generation",)},
    "k8s_oomkill": {
        "static": ("root_cause_analysis", "remediation_planning", "report_synthesis"),
        "runtime_structured": ("root_cause_analysis",),
    },
}
"""What the paper says that a retry runs again (sections 3.2 and 3.3)."""
TABLES = (
    ("validation-qwen2.5-coder-1.5b-instruct", "table1", "multi_file_debugging", "validation"),
    ("papers_event-simulated", "table1", "multi_file_debugging:paper_sized", "validation"),
    ("papers_event-simulated", "table2", "k8s_oomkill:paper_sized", "paper"),
    ("paper-qwen2.5-coder-1.5b-instruct", "table1-paper", "multi_file_debugging", "paper"),
    ("paper-qwen2.5-coder-1.5b-instruct", "table2", "k8s_oomkill", "paper"),
    ("paper_sized-qwen2.5-coder-1.5b-instruct", "table2", "k8s_oomkill:paper_sized", "paper"),
)
THE_MACHINES = ("Framework (s)", "Framework, of latency")
"""Rows of a replay that are the seconds of the machine that replayed it. No archive holds them."""
Event = dict[str, Any]
Trial = dict[str, Any]


def trials_of(run: str) -> tuple[list[Trial], Mapping[str, Any]]:
    with zipfile.ZipFile(ROOT / "results" / f"{run}.zip") as archive:
        manifest = json.loads(archive.read("manifest.json"))
        lines = [json.loads(line) for line in archive.read("trials.jsonl").decode().splitlines()]
    last = {line["id"]: line for line in lines if line["kind"] == "trial"}
    return [trial for trial in last.values() if trial["outcome"] != "error"], manifest["scenarios"]


def tokens(calls: list[Event]) -> int:
    return sum(call["tokens_in"] + call["tokens_out"] for call in calls)


def in_flight(calls: list[Event]) -> float:
    """The seconds in which one of the calls was in flight."""
    total, until = 0.0, -math.inf
    for start, end in sorted((call["started"], call["started"] + call["seconds"]) for call in calls):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def first_pass(trial: Trial, subtasks: list[str]) -> list[Event] | None:
    calls = [event for event in trial["events"] if event["kind"] == "call"]
    asked = {name for call in calls for name in call["subtasks"]}
    by_code = {event["subtask"] for event in trial["events"] if event["kind"] == "commit" and not event["calls"]}
    return [call for call in calls if call["caused_by"] is None] if asked | by_code >= set(subtasks) else None


def first_round(trial: Trial) -> list[Event]:
    """The calls that the rejection of what the fault struck caused, up to the next verdict on that."""
    events = trial["events"]
    noticed = [(at, event) for at, event in enumerate(events) if event["kind"] == "fault" and event["stage"] == "detected"]
    if not noticed:
        return []
    (at, fault), *_ = noticed
    verdicts = at
    while verdicts and events[verdicts - 1]["kind"] in ("fault", "verdict"):
        verdicts -= 1
    behind = at
    while behind < len(events) and events[behind]["kind"] in ("fault", "verdict"):
        behind += 1
    refused = {
        number
        for number in range(verdicts, behind)
        if events[number]["kind"] == "verdict" and events[number]["view"] != "undamaged" and not events[number]["accepted"]
    }
    place = {event["call"]: number for number, event in enumerate(events) if event["kind"] == "call"}
    again = [
        number
        for number, event in enumerate(events[behind:], behind)
        if event["kind"] == "verdict"
        and event["subtask"] == fault["subtask"]
        and event["view"] != "undamaged"
        and any(place[call] > at for call in event["calls"])
    ]
    end = again[0] if again else len(events)
    return [event for event in events[:end] if event["kind"] == "call" and event["caused_by"] in refused]


def spread(values: list[float], digits: int = 0) -> str:
    sd = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{sd}"


class Recount:
    """The cells of one architecture's column, as text without intervals."""

    def __init__(self, trials: list[Trial], subtasks: list[str], scenario: str, plan: str, architecture: str):
        of_arm = [each for each in trials if (each["scenario"], each["architecture"]) == (scenario, architecture)]
        self.free = [trial for trial in of_arm if trial["plan"] == "none"]
        self.passes = [calls for trial in self.free if (calls := first_pass(trial, subtasks)) is not None]
        struck = {trial["repetition"]: first_round(trial) for trial in of_arm if trial["plan"] == plan}
        self.rounds = {repetition: calls for repetition, calls in struck.items() if calls}
        only = COUNTED[scenario.partition(":")[0]].get(architecture)
        self.whole = {repetition: tokens(calls) for repetition, calls in self.rounds.items()}
        self.counted = {
            repetition: tokens([call for call in calls if only is None or call["subtasks"][0] in only])
            for repetition, calls in self.rounds.items()
        }

    def cells(self, monolithic: Recount) -> Iterator[tuple[str, str]]:
        is_first = self is monolithic
        pairs = sorted(self.rounds.keys() & monolithic.rounds.keys())
        beside = "" if is_first else f", {len(pairs)} pair{'' if len(pairs) == 1 else 's'} with monolithic"
        yield "N", f"{len(self.free)} trials, {len(self.passes)} passes, {len(self.rounds)} rounds{beside}"
        yield "Tokens", spread([tokens(calls) for calls in self.passes])
        yield "Latency s", spread([in_flight(calls) for calls in self.passes], 2)
        yield "LLM API (s)", spread([in_flight(calls) for calls in self.passes], 2)
        yield "Framework (s)", spread([trial["framework_seconds"] for trial in self.free], 4)
        yield "Framework, of latency", self.share()
        yield "LLM calls", spread([len(calls) for calls in self.passes], 1)
        solved = sum(trial["outcome"] == "solved" for trial in self.free)
        yield "Correct (all runs)", f"{solved}/{len(self.free)} = {solved / len(self.free):.1%}"
        for title, mine, theirs in (
            ("as the paper counts", self.counted, monolithic.counted),
            ("the whole round", self.whole, monolithic.whole),
        ):
            yield f"Retry tokens, {title}", spread([*mine.values()])
            ratio = 1.0 if is_first else sum(mine[pair] for pair in pairs) / sum(theirs[pair] for pair in pairs)
            yield f"Of monolithic's, {title}", f"{ratio:.1%}"

    def share(self) -> str:
        live = [trial for trial in self.free if trial["timing"] == "live"]
        if not live:
            return "n/a"
        parts = ("api_seconds", "waiting_seconds", "framework_seconds")
        latency = [sum(trial[part] for part in parts) for trial in live]
        framework = [trial["framework_seconds"] for trial in live]
        shares = [part / whole for part, whole in zip(framework, latency, strict=True)]
        return f"{sum(framework) / sum(latency):.3%}, by trial {min(shares):.3%} to {max(shares):.3%}"


def shown(run: str, name: str) -> dict[str, dict[str, str]]:
    """Row -> architecture -> our cell of the table in the committed report, without its interval."""
    report = (ROOT / "reports" / run / "report.md").read_text(encoding="utf-8")
    table = report.split(f'<a id="{name}"></a>')[1].split(f"<!-- end of {name} -->")[0]
    titles, _, *rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines() if line[:1] == "|"
    ]
    ours = {title.partition(",")[0]: place for place, title in enumerate(titles) if ", ours" in title}
    cells = {row[0]: {name: re.sub(r" [\[(].*", "", row[ours[name]]) for name in ARCHITECTURES} for row in rows}
    return {row: {name: cell.rstrip("†") for name, cell in of_row.items()} for row, of_row in cells.items()}


@pytest.mark.parametrize(("run", "name", "scenario", "plan"), TABLES)
def test_each_cell_is_what_the_raw_events_hold(run: str, name: str, scenario: str, plan: str) -> None:
    trials, packs = trials_of(run)
    columns = {each: Recount(trials, packs[scenario]["subtasks"], scenario, plan, each) for each in ARCHITECTURES}
    recounted: dict[str, dict[str, str]] = {}
    for architecture, column in columns.items():
        for row, cell in column.cells(columns["monolithic"]):
            recounted.setdefault(row, {})[architecture] = cell
    table = shown(run, name)
    assert table.keys() == recounted.keys()
    replayed = run == "paper-qwen2.5-coder-1.5b-instruct"
    differ = {row: (table[row], cells) for row, cells in recounted.items() if table[row] != cells}
    assert not {row: cells for row, cells in differ.items() if not (replayed and row in THE_MACHINES)}


@pytest.mark.parametrize("number", [1, 2])
def test_what_a_cell_holds_is_said_as_the_paper_says_it(number: int) -> None:
    published = tomllib.loads((ROOT / "bench" / "read" / "analysis" / "published.toml").read_text(encoding="utf-8"))
    [table] = [table for table in published["table"] if table["number"] == number]
    assert {name: tuple(subtasks) for name, subtasks in table["counted"].items()} == COUNTED[table["scenario"]]
