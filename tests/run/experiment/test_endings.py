"""A run says while it goes on which arms end alike, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from records import called, rejected, trial

from bench.record.record import TrialRecord
from bench.run.experiment.endings import MIN_TRIALS, Endings


def gave_up(number: int, detail: str = "quote: Field required") -> TrialRecord:
    verdict = replace(rejected(1, "evidence"), reason="schema", detail=detail)
    return trial("static", "none", number, "gave_up", [called(1, "evidence"), verdict])


def lines_after(records: Sequence[TrialRecord]) -> list[str]:
    endings = Endings()
    for record in records:
        endings.add(record)
    return list(endings.news())


def test_twenty_trials_of_an_arm_that_gave_up_are_told_of_with_the_field_that_was_missing() -> None:
    assert lines_after([gave_up(number) for number in range(1, MIN_TRIALS)]) == []
    [line] = lines_after([gave_up(number) for number in range(1, MIN_TRIALS + 1)])
    assert line == (
        "static on demo, plan none: all 20 trials so far gave up; "
        "most often: evidence: schema, quote: Field required (20 of 20)"
    )


def test_an_arm_is_told_of_once_and_again_at_the_end() -> None:
    endings = Endings()
    lines = []
    for number in range(1, MIN_TRIALS + 6):
        endings.add(gave_up(number))
        lines += list(endings.news())
    assert len(lines) == 1 and "all 20 trials" in lines[0]
    assert [line.split(" so far")[0] for line in endings.summary()] == ["static on demo, plan none: all 25 trials"]


def test_an_arm_with_a_solved_trial_or_without_grades_is_no_news() -> None:
    mixed = [*(gave_up(number) for number in range(1, 30)), trial("static", "none", 30)]
    assert lines_after(mixed) == []
    assert lines_after([trial("static", "none", number) for number in range(1, 30)]) == []
    assert lines_after([trial("static", "none", number, "ungraded") for number in range(1, 30)]) == []


def test_the_most_frequent_reason_is_told_with_how_often_it_came() -> None:
    rare = [gave_up(number, "cause: Field required") for number in range(1, 4)]
    [line] = lines_after([*rare, *(gave_up(number) for number in range(4, MIN_TRIALS + 1))])
    assert line.endswith("most often: evidence: schema, quote: Field required (17 of 20)")
