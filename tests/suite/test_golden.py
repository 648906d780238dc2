"""The golden net: fault schedules, ledgers, receipts and every column of the frames are what the golden file says they were.

Where one differs on purpose, a rename is declared in `tools/golden/renames.py`, and anything else is taken over by
`PYTHONPATH=tools python -m golden --write`. What that prints belongs in the commit's message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from golden import adapter
from golden.differences import differences, read
from golden.digests import of_run
from golden.items import CONFIGS, items, schedule
from golden.renames import COLUMNS, FRAMES, VALUES

GOLDEN = read()
RUNS = sorted(name.removeprefix("run ") for name in GOLDEN if name.startswith("run "))
ITEMS = items(RUNS)
SHORT = (
    *(f"run {name}" for name in RUNS),
    *(f"schedule {name}" for name in ("chaos", "incident_response", "paper", "parallel", "renewal", "repair_policies")),
    *(f"replay {name}-qwen2.5-coder-1.5b-instruct" for name in ("incidents", "judgment_bank", "paper")),
    *(f"simulation {name}" for name in ("break_even", "parallel", "renewal", "smoke")),
)
"""What the short form looks at; the long form looks at all."""
RUN = "paper-qwen2.5-coder-1.5b-instruct"
FAULTED = "multi_file_debugging | paper"
TRIAL = f"{FAULTED}: {{}} differs in 1 of 30 trials: monolithic | qwen2.5-coder-1.5b-instruct | 1"
GONE = "is gone; where it has another name now, declare that in tools/golden/renames.py"
Frames = dict[str, pd.DataFrame]


@pytest.mark.parametrize("name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.endurance) for name in ITEMS])
def test_nothing_differs_from_the_golden_file(name: str) -> None:
    assert name in GOLDEN, "is new: PYTHONPATH=tools python -m golden --write"
    mismatches = differences(GOLDEN[name], ITEMS[name]())
    assert not mismatches, "\n".join(mismatches)


@cache
def committed() -> adapter.Frames:
    return adapter.read(adapter.ROOT / "results" / RUN)


def lines_after(change: Callable[[Frames], object]) -> list[str]:
    """Return what the net says of a committed run whose frames were changed."""
    frames = {name: frame.copy() for name, frame in committed().items()}
    change(frames)
    return differences(GOLDEN[f"run {RUN}"], of_run(frames))


def put(frame: pd.DataFrame, column: str, change: Callable[[Any], Any]) -> None:
    """Change a value in the first row of one trial that carried a fault."""
    wanted = {"scenario": "multi_file_debugging", "plan": "paper", "architecture": "monolithic", "repetition": 1}
    place = (frame[list(wanted)] == pd.Series(wanted)).all(axis="columns").tolist().index(True)
    values = frame[column].tolist()
    values[place] = change(values[place])
    frame[column] = values


def test_one_token_booked_elsewhere_names_its_trial_and_both_accounts() -> None:
    def book_elsewhere(frames: Frames) -> None:
        put(frames["trials"], "rejected", lambda tokens: tokens - 1)
        put(frames["trials"], "superseded", lambda tokens: tokens + 1)

    assert lines_after(book_elsewhere) == [
        TRIAL.format("ledger"),
        "column trials.rejected differs",
        "column trials.superseded differs",
    ]


def test_a_call_in_another_account_names_its_trial_and_column() -> None:
    def book_elsewhere(frames: Frames) -> None:
        put(frames["calls"], "account", lambda _: "lost")

    assert lines_after(book_elsewhere) == [TRIAL.format("ledger"), "column calls.account differs"]


def test_a_receipt_with_another_end_names_its_trial_and_column() -> None:
    def end_otherwise(frames: Frames) -> None:
        put(frames["faults"], "finish", lambda _: "undetected")

    assert lines_after(end_otherwise) == [TRIAL.format("receipts"), "column faults.ended differs"]


def test_a_row_a_column_and_a_frame_that_are_gone_are_named() -> None:
    def take_out(frames: Frames) -> None:
        frames["waits"] = frames["waits"].iloc[1:]
        frames["replies"] = frames["replies"].drop(columns="kind")
        del frames["recoveries"]

    rows = GOLDEN[f"run {RUN}"]["columns"]["waits"]["rows"]
    assert lines_after(take_out) == [
        f"frame recoveries {GONE}",
        f"column replies.kind {GONE}",
        f"frame waits has {int(rows) - 1} rows, and had {rows}",
    ]


def test_other_ids_framework_seconds_types_and_further_columns_are_no_difference() -> None:
    def change(frames: Frames) -> None:
        frames["trials"]["framework_seconds"] = 7.0
        frames["trials"]["tokens"] = frames["trials"]["tokens"].astype("Float64")
        frames["calls"]["further"] = 1
        for frame in frames.values():
            frame["trial"] = frame["trial"].str[::-1]
        frames["replies"]["digest"] = frames["replies"]["digest"].str.upper()

    assert lines_after(change) == []


def test_ids_that_tell_other_trials_or_replies_apart_are_a_difference() -> None:
    def confuse(frames: Frames) -> None:
        put(frames["trials"], "trial", lambda _: frames["trials"]["trial"].iloc[-1])
        frames["replies"]["digest"] = "the same"

    assert lines_after(confuse) == ["column replies.digest differs", "column trials.trial differs"]


def test_a_declared_rename_is_no_difference_and_an_undeclared_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(frames: Frames) -> None:
        frames["rounds"] = frames.pop("recoveries")
        for name in ("trials", "calls"):
            frames[name] = frames[name].rename(columns={"plan": "scheme", "account": "booked"})
        frames["calls"]["booked"] = frames["calls"]["booked"].replace("in_answer", "counted")

    undeclared = {f"frame recoveries {GONE}", f"column trials.fault {GONE}", f"column calls.account {GONE}"}
    assert undeclared <= set(lines_after(rename))
    monkeypatch.setitem(COLUMNS, "scheme", "fault")
    monkeypatch.setitem(FRAMES, "rounds", "recoveries")
    monkeypatch.setitem(COLUMNS, "booked", "account")
    assert "column calls.account differs" in lines_after(rename)
    monkeypatch.setitem(VALUES, "account", {"counted": "useful"})
    assert lines_after(rename) == []


def test_a_schedule_with_another_seed_names_every_trial(tmp_path: Path) -> None:
    config = tmp_path / "paper.toml"
    config.write_text(CONFIGS["paper"].read_text().replace("seed = 20260515", "seed = 20260516"))
    assert differences(GOLDEN["schedule paper"], schedule(config)) == [
        f"{scenario} | paper: schedule differs in 10 of 10 trials: 1; 2; 3 and 7 more"
        for scenario in ("k8s_oomkill", "multi_file_debugging")
    ]
