"""Find contradictions in the grades of a run, and between its grades and its trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.record.events import Answered, Committed, of_kind
from bench.record.record import NewGrade, Regrade, TrialRecord, outcome_of

LineDefects = Iterator[tuple[int, str]]
"""The number of a line, and what is wrong with it."""


def contradiction(record: TrialRecord | NewGrade) -> str:
    """Return how a trial's outcome contradicts its grade; "" if they agree."""
    if not record.grade or record.outcome == outcome_of(record.grade):
        return ""
    return f"contradicts itself: its outcome is {record.outcome}, its grade means {outcome_of(record.grade)}"


def missing_parts_of_answer(trial: TrialRecord) -> Iterator[str]:
    """Yield each part of the graded answer that the trial's events lack, in words. Code can write an answer, so no call is
    required."""
    if not trial.grade:
        return
    answers = of_kind(trial.events, Answered)
    if not answers:
        yield "contradicts itself: it has a grade, and its events have no answer"
    committed = {(commit.subtask, commit.version) for commit in of_kind(trial.events, Committed)}
    for subtask, version in sorted({version for answer in answers for version in answer.versions} - committed):
        yield f"contradicts itself: its answer has version {version} of {subtask!r}, which no event commits"


def misplaced_grades(records: Sequence[tuple[int, NewGrade | Regrade]], scenarios: Mapping[str, str]) -> LineDefects:
    """Yield the lines of new grades that `bench more regrade` cannot have written. `scenarios` maps each trial to its scenario.

    A regrade writes a line with the number of grades of one scenario that changed, followed by these grades. A regrade that was
    killed writes fewer; the next regrade of its scenario adds the missing grades.
    """
    last = {record.scenario: number for number, record in records if isinstance(record, Regrade)}
    done, at, left = None, 0, 0
    for number, record in records:
        if isinstance(record, Regrade):
            yield from _lacking(done, at, left, last)
            done, at, left = record, number, record.changed
            continue
        if record.trial not in scenarios:
            yield number, f"grades the trial {record.trial}, which the run lacks"
        elif done is None or not left or scenarios[record.trial] != done.scenario:
            yield number, "grades a trial anew, and stands behind no regrade of its scenario that says so"
        if wrong := contradiction(record):
            yield number, wrong
        left = max(0, left - 1)
    yield from _lacking(done, at, left, last)


def _lacking(done: Regrade | None, at: int, left: int, last: Mapping[str, int]) -> LineDefects:
    """Yield a defect if the last regrade of a scenario is followed by fewer grades than its line says."""
    if done and left and last[done.scenario] == at:
        yield at, f"says that {done.changed} grades changed, and {left} of them are lost; `bench more regrade` makes them again"
