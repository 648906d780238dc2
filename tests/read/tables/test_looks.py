"""Instances that were taken over from an earlier run are one look, and those that were asked for later another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from records import called, edit_manifest, trial, write_run

import bench
from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run
from bench.read.tables.looks import looks
from bench.read.tables.outcome_tables import two_looks
from bench.record.record import TrialRecord

EARLIER = {"m": {"kind": "openai", "cache": True, "cache_from": [{"name": "earlier", "digest": "0"}]}}


def records(first: int, later: int) -> list[TrialRecord]:
    """Ten instances that were taken over, of which so many are solved, and ten that were not."""
    return [
        trial(
            "static",
            "none",
            1,
            "solved" if number < solved else "wrong",
            [replace(called(1, "a"), reused=reused), replace(called(2, "b"), reused=True)],
            instance=f"{look}_{number}",
            id=f"{look}-{number}",
        )
        for look, solved, reused in (("first", first, True), ("later", later, False))
        for number in range(10)
    ]


def run_of(folder: Path, records: list[TrialRecord], **models: object) -> Run:
    write_run(folder, records)
    edit_manifest(folder, models=models or EARLIER)
    return bench.load_run(folder)


def test_each_look_has_its_own_count_and_a_difference_is_tested(tmp_path: Path) -> None:
    apart, alike = (run_of(tmp_path / str(first), records(first, 9)) for first in (1, 9))
    [look], [other] = (list(looks(run, arms_of(run))) for run in (apart, alike))
    assert (look.first["static"].k, look.first["static"].n, look.later["static"].k) == (1, 10, 9)
    assert look.p < 0.01 and other.p == pytest.approx(1.0)


def test_a_run_that_took_nothing_over_or_all_is_one_look(tmp_path: Path) -> None:
    whole = [each for each in records(3, 3) if str(each.instance).startswith("first")]
    alone = run_of(tmp_path / "alone", records(1, 9), m={"kind": "openai"})
    assert [list(looks(run, arms_of(run))) for run in (alone, run_of(tmp_path / "whole", whole))] == [[], []]
    assert two_looks(alone, arms_of(alone)) == []


def test_a_single_instance_is_no_look_to_be_tested(tmp_path: Path) -> None:
    one_later = [
        record for record in records(3, 3) if not str(record.instance).startswith("later") or record.instance == "later_0"
    ]
    run = run_of(tmp_path / "run", one_later)
    assert list(looks(run, arms_of(run))) == []


def test_the_table_shows_both_looks_by_architecture(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", records(1, 9))
    [table] = two_looks(run, arms_of(run))
    [row] = table.texts()
    assert row[2:5] == ["static", "1/10 = 10.0% [1.8%, 40.4%]", "9/10 = 90.0% [59.6%, 98.2%]"]
