"""What the sizes of calls decide is said to be decided by them, and what goes against them is not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from study_runs import run_of_matrix
from trials import matrix_of

import bench
from bench.read.analysis.frames import Run
from bench.read.analysis.published import SIZED_VARIANT, Published, load_published
from bench.read.claims.counted import COUNTED, over_whole_rounds
from bench.read.claims.evidence import results_by_model
from bench.read.claims.trace import claim_named, trace
from bench.read.claims.verdicts import Judgement, can_judge, judge_all, ratio_by_sizes


def about_the_fix(published: Published) -> Published:
    """The claims as if they were about a failure of the fix, which more trials of the recording have."""
    claims = (claim.model_copy(update={"plan": "paper"} if claim.plan == "validation" else {}) for claim in published.claim)
    return published.model_copy(update={"claim": tuple(claims)})


PUBLISHED = about_the_fix(load_published())
RESULTS = Path(__file__).parents[3] / "results"
ABOVE, BELOW = "retry.debugging.static-above-monolithic", "retry.debugging.runtime-below-monolithic"
ARCHITECTURES = ["monolithic", "static", "runtime_structured"]


@cache
def recorded() -> Run:
    return bench.load_run(RESULTS / "paper-qwen2.5-coder-1.5b-instruct")


def judged(run: Run, name: str) -> Judgement:
    [judgement] = [each for each in judge_all(run, PUBLISHED) if each.claim.id == name]
    return judgement


def with_rounds(run: Run, architecture: str, times: float) -> Run:
    """The run as if this architecture's rounds had taken so many times as much."""
    of_architecture = run.trials["architecture"].eq(architecture)
    tokens = run.trials[COUNTED.name].where(~of_architecture, run.trials[COUNTED.name] * times)
    return replace(run, trials=run.trials.assign(**{COUNTED.name: tokens}))


def test_a_direction_that_the_closed_form_has_as_well_is_decided_by_sizes_on_either_side() -> None:
    contrary, claimed = (judged(recorded(), name) for name in (ABOVE, BELOW))
    assert (contrary.in_words, contrary.tested) == ("decided by sizes, contrary", "contradicted")
    assert (claimed.in_words, claimed.tested) == ("decided by sizes, as claimed", "holds")
    assert "closed form has 0.78" in contrary.reason and "by the measurement alone: contradicted" in contrary.reason


def test_a_direction_that_goes_against_the_closed_form_is_judged_by_its_test() -> None:
    judgement = judged(with_rounds(recorded(), "static", 3), ABOVE)
    assert judgement.verdict == judgement.tested == "holds"


def test_without_trials_that_no_fault_struck_there_are_no_sizes_to_decide_by() -> None:
    run = recorded()
    struck = run.map_frames(lambda frame: frame[frame["plan"].ne("none")] if "plan" in frame else frame)
    assert judged(struck, BELOW).verdict == "holds"


def test_another_models_rounds_take_no_closed_form_away() -> None:
    run = bench.load_run(RESULTS / "validation-qwen2.5-coder-1.5b-instruct")
    claim = claim_named(over_whole_rounds(load_published()), ABOVE)
    rounds = run.calls[run.calls["in_first_round"]]
    of_other = rounds.assign(model="other", trial=rounds["trial"] + " (other)", subtask="validation")
    both = replace(run, calls=pd.concat([run.calls, of_other], ignore_index=True))
    alone, beside = (results_by_model(each)[0] for each in (run, both))
    assert ratio_by_sizes(alone, claim) == ratio_by_sizes(beside, claim) is not None


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A simulated run of the debugging pack at the paper's size."""
    fault = {"point": "output", "effect": "missing_field", "attempts": [1], "subtask": "fix_generation"}
    settings = {"architectures": ARCHITECTURES, "repetitions": 3}
    pack = f"multi_file_debugging:{SIZED_VARIANT}"
    return run_of_matrix(tmp_path_factory.mktemp("sized"), matrix_of(pack, {"none": [], "paper": [fault]}, {}, **settings))


def test_at_the_papers_sizes_the_order_turns_without_any_model(sized: Run) -> None:
    judgement = judged(sized, f"{ABOVE}:{SIZED_VARIANT}")
    assert judgement.in_words == "decided by sizes, as claimed" and judgement.tested == "not comparable"
    assert "simulated proposer" in judgement.reason


def test_a_run_of_sized_packs_alone_is_judged_at_that_size_alone(sized: Run) -> None:
    assert can_judge(sized, PUBLISHED)
    assert {judgement.claim.scenario.partition(":")[2] for judgement in judge_all(sized, PUBLISHED)} == {SIZED_VARIANT}


def test_each_size_is_a_family_of_its_own(sized: Run) -> None:
    """What is judged at one size changes no p at the other."""
    alone, run = judged(recorded(), BELOW), recorded()
    named = sized.map_frames(lambda frame: frame.assign(model=run.names("model")[0]) if "model" in frame else frame)
    both = replace(run, trials=pd.concat([run.trials, named.trials], ignore_index=True))
    assert judged(both, BELOW).p == alone.p
    assert any(judgement.claim.id.endswith(SIZED_VARIANT) for judgement in judge_all(both, PUBLISHED))


def test_a_claim_at_the_papers_sizes_is_traced_by_its_name(sized: Run) -> None:
    [(_, result)] = trace(sized, claim_named(PUBLISHED, f"{ABOVE}:{SIZED_VARIANT}"))
    assert isinstance(result, tuple) and len(result) == 6
