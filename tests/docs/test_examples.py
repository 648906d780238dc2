"""The examples of architectures are some: each runs, and does what the page says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from blocks import blocks_of
from trials import calls, events, matrix_of, run_all

from bench.record.events import Called
from bench.run.experiment.trial import TrialResult

PAGE = Path(__file__).parents[2] / "docs" / "own_architecture.md"
FAULT = {"point": "output", "effect": "missing_field", "attempts": [1]}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's own modules can be imported, as `page_MODULE`."""
    for block in blocks_of(PAGE.read_text(encoding="utf-8")):
        if block.file.endswith(".py"):
            (tmp_path / f"page_{block.file}").write_text(block.text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def plain_and_struck(name: str, subtask: str, pack: str = "tiny") -> tuple[TrialResult, TrialResult]:
    """The trial of an architecture without a fault, and that with one in this subtask's first reply; both are solved."""
    plans = (None, {"plan": [{**FAULT, "subtask": subtask}]})
    plain, struck = (run_all(matrix_of(pack, plans=plan, architectures=[f"page_{name}"]))[0] for plan in plans)
    assert [result.record.outcome for result in (plain, struck)] == ["solved", "solved"]
    return plain, struck


@pytest.mark.usefixtures("modules")
def test_in_the_ten_lines_a_rejection_throws_everything_away() -> None:
    plain, struck = plain_and_struck("mine:from_the_start", "total")
    once = [subtasks for subtasks, _, _ in calls(plain)]
    assert once and [subtasks for subtasks, _, _ in calls(struck)] == [*once[: once.index("total") + 1], *once]


@pytest.mark.usefixtures("modules")
def test_the_vote_asks_three_times_at_once_and_a_fault_in_one_sample_makes_no_retry() -> None:
    plain, struck = plain_and_struck("vote:vote", "total")
    for result in (plain, struck):
        causes = [call.cause for call in sorted(events(result, Called), key=lambda call: call.call)]
        assert causes == ["first", "sample", "sample"] * 3
