"""A model exchanged in mid-horizon: what is asked again, what drifts, and what a pin keeps."""

from __future__ import annotations

import pytest
from study_runs import run_of_matrix
from trials import ROOTS

from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.record.events import Committed, Event
from bench.record.world_events import ProcessDied, Stepped, ToolCalled
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.model_exchange.study import Drift, drifts, log_less_row, replayed_in

CONFIG = ROOTS[0].parent / "studies" / "model_exchange" / "config.toml"
BARE = {"architectures": ["event_driven", "event_driven_pinned", "state_machine"], "plans": ["dies_after_offer"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = load_config(CONFIG, {**BARE, "instances": 2})
    return run_of_matrix(tmp_path_factory.mktemp("exchange"), build_matrix(config, ROOTS[:1], "code"))


def by_form(run: Run) -> dict[tuple[str, str], Drift]:
    return {(drift.pattern, drift.form): drift for drift in drifts(run)}


def test_a_bare_log_asks_again_what_it_had_decided_and_a_row_does_not(run: Run) -> None:
    drift = by_form(run)
    assert (drift["event_driven", "bare"].decided.value, drift["state_machine", "bare"].decided.value) == (2, 0)


def test_a_pin_keeps_a_log_from_asking_again_and_so_from_drifting(run: Run) -> None:
    pinned, bare = (by_form(run)["event_driven", form] for form in ("pinned", "bare"))
    assert (pinned.decided.value, pinned.drifted.value, pinned.kept.value) == (0, 0, 0)
    assert bare.drifted.value is not None and bare.drifted.value > 0
    assert bare.kept.value is not None and bare.beyond.value == pytest.approx(bare.drifted.value - bare.kept.value)


def test_the_newer_model_answers_after_the_death_alone(run: Run) -> None:
    exchanged = run.calls[run.calls["model"] == "exchanged"]
    crashed = run.trials.loc[run.trials["model"] == "exchanged", "lives"]
    assert set(exchanged["by"].astype(str)) == {"errs_as_0.5b", "errs_as_1.5b"} and (crashed > 1).all()
    assert exchanged.groupby("trial", observed=True)["by"].first().astype(str).eq("errs_as_0.5b").all()


def test_the_log_is_compared_with_the_row_in_the_forms_that_both_have(run: Run) -> None:
    [less] = log_less_row(run)
    assert (less.form, less.drifted.value) == ("bare", by_form(run)["event_driven", "bare"].drifted.value)


def called(effect: str, arguments: str, step: str = "pay") -> ToolCalled:
    told = ("done", "", "", "", "", 1, 0, 0, 0.0, "", "")
    return ToolCalled("pay", "final", effect, 1, None, 1, arguments, None, *told, step=step)


def began(step: str) -> Stepped:
    return Stepped(step, "began", "", 1, 0, 0)


def committed(subtask: str) -> Committed:
    return Committed(subtask, 1, (), True, "digest", ())


DIED: list[Event] = [ProcessDied("recorded", 1, 0, 0)]


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ([began("pay"), committed("amount"), called("1", "a")], [began("pay"), committed("amount"), called("1", "b")], (1, 1)),
        ([began("pay"), committed("amount"), called("1", "a")], [began("pay"), committed("amount"), called("1", "a")], (1, 0)),
        (
            [began("pay"), committed("amount"), called("1", "a")],
            [began("tip"), committed("amount"), called("1", "b", "tip")],
            (0, 0),
        ),
        ([began("pay"), called("1", "a")], [began("pay"), called("2", "b")], (0, 0)),
    ],
)
def test_an_effect_drifts_where_the_same_step_makes_it_again_with_other_arguments(
    before: list[Event], after: list[Event], counts: tuple[int, int]
) -> None:
    assert replayed_in([*before, *DIED, *after]) == counts
    assert replayed_in([*before, *after]) == (0, 0), "without a death nothing is replayed"


def test_a_run_without_a_model_that_is_exchanged_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    kept = load_config(CONFIG, {**BARE, "instances": 1, "models": ["errs_as_1.5b"]})
    run = run_of_matrix(tmp_path_factory.mktemp("kept"), build_matrix(kept, ROOTS[:1], "code"))
    with pytest.raises(ResultsError, match="needs a model with `after_crash`"):
        drifts(run)
