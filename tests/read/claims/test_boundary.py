"""Claims that the runtime alone decides: judged on a simulated proposer, and marked so, in whatever scenario they come up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from exactly_once.sagas import matrix_of_sagas
from study_runs import run_of_matrix
from trips import BARE, REMEDIED, Trip, worked

from bench.read.analysis.frames import Run
from bench.read.claims.published import load_others
from bench.read.claims.table import COUNTEREXAMPLE_NOTE, MODEL_NOTE, RUNTIME_NOTE, notes_on, other_claims
from bench.read.claims.verdicts import ON_SIMULATED, JudgedSource, Judgement, can_judge, judge_all
from bench.record.worlds.events import ToolCalled
from bench.worlds.read.analysis.workflow import compensations

[BOUNDARY] = [source for source in load_others() if "2605.20173" in source.paper.source]


@pytest.fixture(scope="module", name="run")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    matrix = matrix_of_sagas(4)
    wanted = ("state_machine", "state_machine_remedied", "composition_remedied")
    specs = tuple(spec for spec in matrix.specs if spec.architecture in wanted and spec.plan.name == "slow_payment")
    return run_of_matrix(tmp_path_factory.mktemp("sagas"), replace(matrix, specs=specs))


@pytest.fixture(name="judged")
def _judged(run: Run) -> dict[str, Judgement]:
    return {judgement.claim.id.removeprefix("boundary."): judgement for judgement in judge_all(run, BOUNDARY)}


def test_what_the_runtime_alone_decides_is_judged_on_a_simulated_proposer_and_marked_so(judged: dict[str, Judgement]) -> None:
    bare, kept = (judged[f"stale-is-rejected.state_machine{form}"] for form in ("", "_remedied"))
    assert bare.verdict == "counterexample found" and bare.measured is not None and bare.measured.otherwise > 0
    assert kept.verdict == "inconclusive" and kept.measured is not None and kept.measured.otherwise == 0
    assert all(each.reason.endswith(ON_SIMULATED) for each in (bare, kept))


def test_a_saga_that_no_trial_put_to_the_test_is_not_measured(judged: dict[str, Judgement]) -> None:
    assert judged["compensation-in-reverse.composition_remedied"].measured is not None
    lacking = judged["compensation-in-reverse.scatter_gather_saga_remedied"]
    assert (lacking.verdict, lacking.reason) == (
        "not measured",
        "no trial of scatter_gather_saga_remedied took two effects back in a row",
    )


def test_a_run_without_a_world_says_nothing_of_them(run: Run) -> None:
    assert can_judge(run, BOUNDARY)
    assert not can_judge(replace(run, trials=run.trials.assign(lives=None)), BOUNDARY)


def test_effects_taken_back_in_another_order_are_counted() -> None:
    events = worked("composition", trips=[Trip(1, 800, reason="private")]).record.events
    assert compensations(events) == (2, 0)
    undone = [number for number, event in enumerate(events) if isinstance(event, ToolCalled) and event.role == "compensation"]
    swapped = list(events)
    swapped[undone[0]], swapped[undone[1]] = events[undone[1]], events[undone[0]]
    assert compensations(swapped) == (2, 1)
    assert compensations(worked("composition", REMEDIED).record.events) == (0, 0)
    assert compensations(worked("bare_agent", BARE).record.events) == (0, 0)


def test_the_notes_say_that_the_runtime_is_judged_on_a_simulated_proposer_and_a_model_is_not(run: Run) -> None:
    notes = other_claims(run, JudgedSource(BOUNDARY, judge_all(run, BOUNDARY))).notes
    assert RUNTIME_NOTE in notes and MODEL_NOTE not in notes and COUNTEREXAMPLE_NOTE in notes
    assert not any("a loss" in note.lower() or "(floor)" in note for note in notes)
    for source in load_others():
        about = {claim.about for claim in source.claims}
        assert (RUNTIME_NOTE in notes_on(source), MODEL_NOTE in notes_on(source)) == (
            "runtime" in about,
            "runtime" not in about,
        )
