"""From how many failures a trial on the architecture that is dearer in its first pass is the cheaper one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records import experiment, run_of, trial

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run, load_run
from bench.read.analysis.published import load_published
from bench.read.analysis.statistics import Pair, mean_of
from bench.read.claims.break_even import ArchitecturePair, architecture_pairs, break_even
from bench.record.events import Called, Event
from bench.record.record import TrialRecord

PAPER = Path(__file__).parents[3] / "results" / "paper-qwen2.5-coder-1.5b-instruct"

tokens = st.integers(1, 10_000)


def alike(value: float, pairs: int = 6) -> dict[Pair, float]:
    """The same in each repetition."""
    return {("", repetition): float(value) for repetition in range(1, pairs + 1)}


def each(*values: float, instance: str = "") -> dict[Pair, float]:
    return {(instance, repetition): float(value) for repetition, value in enumerate(values, start=1)}


# The formula


@settings(max_examples=30)
@given(tokens, tokens, tokens, tokens)
def test_at_the_break_even_both_take_the_same_and_beyond_it_the_first_takes_less(
    one_pass: int, extra: int, one_round: int, saved: int
) -> None:
    result = break_even((alike(one_pass + extra), alike(one_pass)), (alike(one_round), alike(one_round + saved)))
    assert result is not None
    assert result.rate == pytest.approx(extra / saved)
    assert (result.low, result.high) == (result.rate, result.rate), "values without spread leave no doubt"

    def ahead(failures: float) -> float:
        return one_pass + failures * (one_round + saved) - (one_pass + extra + failures * one_round)

    assert ahead(result.rate) == pytest.approx(0, abs=1e-6)
    assert ahead(result.rate + 1) > 0 > ahead(result.rate - 0.5 * result.rate)


@pytest.mark.parametrize(
    ("extra", "saved", "rate"),
    [
        *[(100, 50, 2.0), (0, 50, 0.0), (-100, 50, 0.0)],
        *[(100, 0, math.inf), (100, -50, math.inf), (0, -50, math.inf), (-100, -50, math.inf)],
        *[(0, 0, math.inf), (-100, 0, 0.0)],
    ],
)
def test_an_arm_dearer_in_neither_is_cheaper_at_any_rate(extra: float, saved: float, rate: float) -> None:
    result = break_even((alike(1000 + extra), alike(1000)), (alike(1000 - saved), alike(1000)))
    assert result is not None and result.rate == rate
    assert (result.low, result.high) == (rate, rate)


def test_without_a_first_pass_or_a_round_of_both_there_is_nothing_to_compare() -> None:
    nothing: dict[Pair, float] = {}
    assert break_even((nothing, nothing), (alike(1), alike(2))) is None
    assert break_even((alike(2), alike(1)), (nothing, nothing)) is None


# Its interval


def test_the_interval_holds_the_rate_and_is_the_same_each_time_and_in_any_order() -> None:
    passes, rounds = (each(300, 350, 320, 360, 310), alike(100, 5)), (alike(40, 5), each(140, 120, 150, 150, 130))
    result = break_even(passes, rounds)
    assert result is not None and result.low is not None and result.high is not None
    assert result.rate == pytest.approx(228 / 98)
    assert result.low < result.rate < result.high
    backwards = tuple(dict(reversed(spent.items())) for spent in (*passes, *rounds))
    assert break_even((backwards[0], backwards[1]), (backwards[2], backwards[3])) == result


def test_what_the_first_pass_and_the_round_of_a_repetition_have_in_common_cancels_out() -> None:
    """A repetition whose texts are long is dear in both: drawn together, their ratio hardly varies."""
    sizes = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
    together = break_even((each(*sizes), alike(0)), (alike(0), each(*sizes)))
    apart = break_even((each(*sizes), alike(0)), (alike(0), each(*reversed(sizes))))
    assert together is not None and apart is not None
    assert (together.low, together.rate, together.high) == pytest.approx((1, 1, 1))
    assert apart.low is not None and apart.low < 0.8


def test_a_saving_that_cannot_be_told_from_nothing_leaves_no_upper_bound() -> None:
    passes = (alike(1100), alike(1000))
    doubtful = break_even(passes, (alike(1000), each(1500, 900, 1300, 800, 1400, 1000)))
    plain = break_even(passes, (alike(1000), each(1150, 1140, 1160, 1150, 1155, 1145)))
    assert doubtful is not None and plain is not None
    assert doubtful.low is not None and 0 < doubtful.low < doubtful.rate < math.inf == doubtful.high
    assert plain.high is not None and plain.rate < plain.high < 1


def test_where_it_is_dearer_in_both_a_doubt_about_the_round_is_in_the_lower_end() -> None:
    result = break_even((alike(1100), alike(1000)), (alike(1000), each(900, 1150, 800, 1100, 950, 1000)))
    assert result is not None and result.rate == math.inf == result.high
    assert result.low is not None and result.low < math.inf


def test_more_repetitions_of_the_same_instances_say_no_more_about_instances() -> None:
    def of(repetitions: int) -> tuple[Mapping[Pair, float], Mapping[Pair, float]]:
        extra = {"a": 100.0, "b": 200.0, "c": 300.0, "d": 400.0, "e": 500.0}
        more = {(name, number): 1000 + tokens for name, tokens in extra.items() for number in range(repetitions)}
        return more, dict.fromkeys(more, 1000.0)

    def rounds(passes: tuple[Mapping[Pair, float], Mapping[Pair, float]]) -> tuple[dict[Pair, float], dict[Pair, float]]:
        return dict.fromkeys(passes[0], 100.0), dict.fromkeys(passes[0], 200.0)

    once, often = of(1), of(8)
    assert break_even(once, rounds(once)) == break_even(often, rounds(often))


def test_each_instance_counts_once_however_many_of_its_repetitions_are_there() -> None:
    more = {**each(1100, 1100, 1100, 1100, instance="a"), **each(1300, instance="b")}
    result = break_even((more, dict.fromkeys(more, 1000.0)), (dict.fromkeys(more, 100.0), dict.fromkeys(more, 200.0)))
    assert result is not None and result.rate == pytest.approx(2.0)


def test_one_pair_has_no_interval() -> None:
    result = break_even((alike(300, 1), alike(100, 1)), (alike(50, 9), alike(150, 9)))
    assert result is not None and (result.rate, result.low, result.high) == (2.0, None, None)


def test_the_interval_of_few_repetitions_is_as_wide_as_students_where_there_is_nothing_to_divide_by() -> None:
    values = each(*np.random.default_rng(1).normal(1200, 300, 10))
    result, student = break_even((values, alike(0, 10)), (alike(0, 10), alike(1, 10))), mean_of(values.values())
    assert result is not None and result.low is not None and result.high is not None
    assert student.low is not None and student.high is not None
    width = (result.high - result.low) / (student.high - student.low)
    assert 0.95 < width < 1.05, "a plain percentile interval has 0.82 of it"


# Two architectures of a run


def _structured(plan: str, repetition: int, retry: int) -> TrialRecord:
    """Four hundred tokens more in its first pass than `trial`'s, and a round of so many."""
    events = trial("static", plan, repetition).events
    return trial("structured", plan, repetition, events=[_dearer(event, retry) for event in events])


def _dearer(event: Event, retry: int) -> Event:
    if not isinstance(event, Called):
        return event
    return replace(event, tokens_in=retry, tokens_out=0) if event.cause == "retry" else replace(event, tokens_in=300)


def all_rivals(run: Run) -> list[ArchitecturePair]:
    return [pair for pairs in architecture_pairs(arms_of(run), load_published()).values() for pair in pairs]


def rivals(run: Run) -> dict[tuple[str, str], ArchitecturePair]:
    return {(rival.name, rival.other): rival for rival in all_rivals(run)}


@pytest.mark.parametrize("first", ["static", "structured"])
def test_the_one_that_is_dearer_at_first_stands_first_whichever_way_the_config_has_them(tmp_path: Path, first: str) -> None:
    static = experiment(("static",), repetitions=4)
    structured = [_structured(plan, number, 40) for number in range(1, 5) for plan in ("none", "paper")]
    records = [*static, *structured] if first == "static" else [*structured, *static]
    (rival,) = rivals(run_of(tmp_path / "run", records)).values()
    assert (rival.name, rival.other) == ("structured", "static")
    assert (rival.passes.ours.mean, rival.passes.theirs.mean) == (640.0, 240.0)
    assert (rival.rounds.ours.mean, rival.rounds.theirs.mean) == (40.0, 145.0)
    assert rival.break_even is not None and rival.break_even.rate == pytest.approx(400 / 105)
    assert rival.published is None, "the paper has no such pack"
    assert [mean.mean for mean in rival.rejections] == [0.0, 0.0], "the fault's are not its own"


def test_two_that_are_dearer_and_cheaper_in_both_stand_as_in_the_config(tmp_path: Path) -> None:
    static = experiment(("static",), repetitions=4)
    dearer = [_structured(plan, number, 900) for number in range(1, 5) for plan in ("none", "paper")]
    (rival,) = rivals(run_of(tmp_path / "later", [*static, *dearer])).values()
    assert rival.name == "structured" and rival.break_even is not None and rival.break_even.rate == math.inf
    (rival,) = rivals(run_of(tmp_path / "earlier", [*dearer, *static])).values()
    assert rival.name == "static" and rival.break_even is not None and rival.break_even.rate == 0.0


def test_a_run_without_faults_or_without_controls_has_no_break_even(tmp_path: Path) -> None:
    assert not rivals(run_of(tmp_path / "free", experiment(plans=["none"])))
    assert not rivals(run_of(tmp_path / "struck", experiment(plans=["paper"])))


def test_the_papers_figures_imply_its_break_evens(tmp_path: Path) -> None:
    names = ("monolithic", "static", "runtime_structured")
    for scenario, failure, expected in (("k8s_oomkill", "paper", 3.9), ("multi_file_debugging", "validation", 6.3)):
        records = [trial(name, plan, scenario=scenario) for plan in ("none", failure) for name in names]
        result = {pair: rival.published for pair, rival in rivals(run_of(tmp_path / scenario, records)).items()}
        structured, static = result["runtime_structured", "monolithic"], result["static", "monolithic"]
        assert structured is not None and structured.rate == pytest.approx(expected, abs=0.05)
        assert static is not None and static.rate == math.inf, "it is dearer in both"


# The committed recording


@pytest.fixture(scope="module")
def recorded() -> Run:
    return load_run(PAPER)


def by_repetition(run: Run, scenario: str, plan: str, architecture: str, column: str) -> pd.Series[float]:
    trials = run.trials[(run.trials["scenario"] == scenario) & (run.trials["plan"] == plan)]
    tokens = trials[trials["architecture"] == architecture]
    return tokens.set_index("repetition")[column].dropna()


def test_the_recordings_break_evens_are_those_of_plain_arithmetic_on_its_frames(recorded: Run) -> None:
    result = {(rival.condition.scenario, rival.name, rival.other): rival for rival in all_rivals(recorded)}
    assert len(result) == 6
    for (scenario, name, other), each in result.items():
        extra, saved = (
            by_repetition(recorded, scenario, "none", name, "first_pass_tokens")
            - by_repetition(recorded, scenario, "none", other, "first_pass_tokens"),
            by_repetition(recorded, scenario, "paper", other, "first_round_tokens")
            - by_repetition(recorded, scenario, "paper", name, "first_round_tokens"),
        )
        assert each.break_even is not None
        assert each.break_even.rate == pytest.approx(max(0.0, extra.mean() / saved.mean()))
        assert (each.passes.ours.n, each.rounds.ours.n) == (extra.count(), saved.count())


def test_a_bound_that_few_resamples_lack_is_none_where_the_round_alone_might_save_nothing(recorded: Run) -> None:
    """On k8s_oomkill what a round of static saves is 306 [-4, 616] tokens: less than 1% of resamples save nothing."""
    (rival,) = (
        each
        for each in all_rivals(recorded)
        if (each.condition.scenario, each.name, each.other) == ("k8s_oomkill", "static", "monolithic")
    )
    assert rival.break_even is not None and rival.break_even.high == math.inf
    assert rival.break_even.low is not None and rival.break_even.low < rival.break_even.rate < math.inf


def test_a_repetition_without_a_round_is_still_one_of_the_first_passes(recorded: Run) -> None:
    """Its monolithic reply was cut off, so that no fault could strike it: left out, the monolithic first pass would look
    cheaper than it is, and the break-even lie at 1.02 and not at 0.88."""
    scenario, column = "multi_file_debugging", "first_pass_tokens"
    passes = [by_repetition(recorded, scenario, "none", name, column) for name in ("runtime_structured", "monolithic")]
    rounds = by_repetition(recorded, scenario, "paper", "monolithic", "first_round_tokens")
    extra = (passes[0] - passes[1]).dropna()
    (without_round,) = set(extra.index) - set(rounds.index)
    assert extra[without_round] < extra.drop(without_round).min()
    saved = rounds - by_repetition(recorded, scenario, "paper", "runtime_structured", "first_round_tokens")
    assert extra.mean() / saved.mean() == pytest.approx(0.883, abs=0.001)
    assert (extra / saved * saved).dropna().mean() / saved[extra.index].mean() == pytest.approx(1.017, abs=0.001)
