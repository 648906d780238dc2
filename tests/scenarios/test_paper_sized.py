"""The paper-sized variants: their calls are as long as the paper's, and their tasks are of the same kind."""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from trials import events, matrix_of, run_all

from bench.read.analysis.published import load_published
from bench.record.events import Called
from bench.run.packs import load_pack
from bench.run.trial.verification import Rejected
from bench.run.trial.verification import judge as verify_all
from bench.scenario import Grade, Scenario

ROOT = Path(__file__).parents[2] / "scenarios"
PACKS = {"multi_file_debugging": "fix_generation", "k8s_oomkill": "root_cause_analysis"}
"""Pack -> the subtask at which the paper's configuration of this project fails."""
ARCHITECTURES = ("monolithic", "static", "runtime_structured")
PAPER = load_published()


def sized(pack: str) -> Scenario:
    return load_pack(f"{pack}:paper_sized", [ROOT])


@cache
def tokens(pack: str) -> dict[str, tuple[int, int]]:
    """Architecture -> the tokens of a pass without a fault, and of the round after the fault, with the reference's answers."""
    fault = {"point": "output", "effect": "missing_field", "attempts": [1], "subtask": PACKS[pack]}
    plans = {"none": [], "struck": [fault]}
    results = run_all(matrix_of(f"{pack}:paper_sized", plans, {"wrapping": False}, architectures=list(ARCHITECTURES)))
    calls = {(result.record.architecture, result.record.plan): events(result, Called) for result in results}
    return {
        name: (
            sum(call.tokens_in + call.tokens_out for call in calls[name, "none"]),
            sum(call.tokens_in + call.tokens_out for call in calls[name, "struck"] if call.cause != "first"),
        )
        for name in ARCHITECTURES
    }


@pytest.mark.parametrize("pack", PACKS)
def test_a_monolithic_call_is_as_long_as_the_paper_s(pack: str) -> None:
    published = PAPER.cell(pack, "tokens", "monolithic")
    assert published.sd is not None
    whole, again = tokens(pack)["monolithic"]
    assert abs(whole - published.mean) <= published.sd
    assert again == whole


@pytest.mark.parametrize("pack", PACKS)
def test_the_rounds_are_ordered_as_the_paper_s_are(pack: str) -> None:
    ours = {name: again for name, (_, again) in tokens(pack).items()}
    published = {name: PAPER.cell(pack, "retry_tokens", name).mean for name in ARCHITECTURES}
    assert sorted(ours, key=lambda name: ours[name]) == sorted(published, key=lambda name: published[name])


@pytest.mark.parametrize("pack", PACKS)
def test_the_readme_tells_the_sizes_as_they_are(pack: str) -> None:
    text = (ROOT / pack / "README.md").read_text(encoding="utf-8")
    for name, (whole, again) in tokens(pack).items():
        paper = (PAPER.cell(pack, row, name).mean for row in ("tokens", "retry_tokens"))
        cells = [f"{number:,.0f}" for number in (whole, next(paper), again, next(paper))]
        assert f"| `{name}` | {' | '.join(cells)} |" in text


@pytest.mark.parametrize("pack", PACKS)
def test_the_reference_is_right_and_each_wrong_answer_passes_all_checks_and_is_refused(pack: str) -> None:
    scenario = sized(pack)
    for outputs in [{}, *(wrong.outputs for wrong in scenario.wrong)]:
        whole = {**scenario.reference, **outputs}
        verdicts = verify_all(scenario.task.subtasks, whole, scenario.task.documents, {})
        assert [verdict for verdict in verdicts.values() if isinstance(verdict, Rejected)] == [], outputs
        graded = scenario.grade_outputs(whole)
        assert graded.correct is (not outputs) and (graded.score < 1) is bool(outputs)


@pytest.mark.parametrize("pack", PACKS)
def test_the_subtasks_are_those_of_the_pack_and_read_the_same_outputs(pack: str) -> None:
    ours, theirs = sized(pack).task, load_pack(pack, [ROOT]).task
    names = {subtask.name for subtask in theirs.subtasks}
    for mine, other in zip(ours.subtasks, theirs.subtasks, strict=True):
        assert (mine.name, mine.checkpoint) == (other.name, other.checkpoint)
        assert [read for read in mine.reads if read in names] == [read for read in other.reads if read in names]


def graded_with(*bugs: int) -> Grade:
    scenario = sized("multi_file_debugging")
    edits = scenario.reference["fix_generation"]["edits"]
    return scenario.grade_outputs({**scenario.reference, "fix_generation": {"edits": [edits[bug - 1] for bug in bugs]}})


def test_each_bug_hides_the_next_one() -> None:
    for size in range(4):
        for bugs in combinations((1, 2, 3), size):
            parts = graded_with(*bugs).parts
            first_left = min({1, 2, 3, 4} - set(bugs))
            assert parts == {f"bug_{bug}": float(bug < first_left) for bug in (1, 2, 3)}, bugs


def test_an_edit_whose_line_stands_in_no_file_fits_nowhere() -> None:
    scenario = sized("multi_file_debugging")
    whole = {**scenario.reference, "fix_generation": {"edits": [{"find": "total = 0", "replace": "total = 1"}]}}
    verdict = verify_all(scenario.task.subtasks, whole, scenario.task.documents, {})["fix_generation"]
    assert isinstance(verdict, Rejected) and re.search("does not occur", verdict.detail)
    assert not scenario.grade_outputs(whole).correct
