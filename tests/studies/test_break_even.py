"""The closed forms are what the architectures do: against every way in which faults can fall, and against simulated trials."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from study_runs import run_of_matrix
from trials import Fault, matrix_of

from studies.break_even.closed_forms import Expectation, Pipeline, monolithic, runtime_structured, static
from studies.break_even.crossing import Trials, crossing, crossing_of, trials_in_both
from studies.break_even.study import price_curves

STAGES = ((3.0, 5.0), (7.0,))
"""Prices of three subtasks, the second of which is a checkpoint."""
ATTEMPTS = 3
Pattern = dict[tuple[int, int], bool]
"""(subtask, attempt) -> is it struck?"""


def over_all_patterns(play: object, rate: float) -> Expectation:
    """The exact expectation: each pattern of faults played through, weighted with its chance."""
    assert callable(play)
    cells = [(subtask, attempt) for subtask in range(3) for attempt in range(1, ATTEMPTS + 1)]
    spent = solved = 0.0
    for struck in product((False, True), repeat=len(cells)):
        chance = math.prod(rate if each else 1 - rate for each in struck)
        paid, done = play(dict(zip(cells, struck, strict=True)))
        spent, solved = spent + chance * paid, solved + chance * done
    return Expectation(spent, solved)


def play_static(struck: Pattern) -> tuple[float, bool]:
    """The loop of the architecture, on prices in place of calls."""
    prices, paid, attempts = [3.0, 5.0, 7.0], 0.0, [0, 0, 0]
    for stage in ([0, 1], [2]):
        rest = stage
        while rest:
            for subtask in rest:
                if attempts[subtask] == ATTEMPTS:
                    return paid, False
                attempts[subtask] += 1
                paid += prices[subtask]
            bad = [subtask for subtask in stage if struck[subtask, attempts[subtask]]]
            rest = stage[stage.index(bad[0]) :] if bad else []
    return paid, True


def play_runtime_structured(struck: Pattern) -> tuple[float, bool]:
    paid = 0.0
    for subtask, price in enumerate((3.0, 5.0, 7.0)):
        for attempt in range(1, ATTEMPTS + 1):
            paid += price if attempt == 1 else price + 1
            if not struck[subtask, attempt]:
                break
        else:
            return paid, False
    return paid, True


def play_monolithic(struck: Pattern) -> tuple[float, bool]:
    for attempt in range(1, ATTEMPTS + 1):
        if not any(struck[subtask, attempt] for subtask in range(3)):
            return 11.0 * attempt, True
    return 11.0 * ATTEMPTS, False


def close(expectation: Expectation, other: Expectation) -> bool:
    return expectation.spent == pytest.approx(other.spent) and expectation.solved == pytest.approx(other.solved)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_each_closed_form_is_the_sum_over_all_ways_in_which_faults_can_fall(rate: float) -> None:
    dearer = tuple(tuple(price + 1 for price in stage) for stage in STAGES)
    assert close(static(Pipeline(STAGES, STAGES, ATTEMPTS), rate), over_all_patterns(play_static, rate))
    structured = runtime_structured(Pipeline(STAGES, dearer, ATTEMPTS), rate)
    assert close(structured, over_all_patterns(play_runtime_structured, rate))
    assert close(monolithic(11.0, 3, rate, ATTEMPTS), over_all_patterns(play_monolithic, rate))


def test_the_price_of_a_task_solved_in_one_call_does_not_depend_on_the_bound_of_attempts() -> None:
    prices = [monolithic(11.0, 3, 0.4, attempts).per_solved for attempts in (1, 3, 50)]
    assert prices == pytest.approx([11.0 / 0.6**3] * 3)


def test_nothing_solved_has_no_finite_price() -> None:
    assert math.isinf(monolithic(11.0, 3, 1.0, 3).per_solved)


def test_simulated_trials_agree_with_the_closed_forms_within_their_intervals(tmp_path: Path) -> None:
    plans: dict[str, list[Fault]] = {"none": [], "often": [{"point": "output", "effect": "missing_field", "probability": 0.25}]}
    known = ["monolithic", "static", "runtime_structured"]
    curves = price_curves(run_of_matrix(tmp_path, matrix_of(architectures=known, plans=plans, repetitions=100)))
    assert {each.measure.name for each in curves} == {"tokens", "latency_seconds"}, "without prices there is no cost"
    for curve in curves:
        assert list(curve.curves) == known
        for name, (without, often) in curve.curves.items():
            assert (without.rate, often.rate) == (0.0, 0.25)
            assert without.expected == pytest.approx(without.spent.value), name
            assert often.expected is not None and often.spent.low is not None and often.spent.high is not None
            assert often.spent.low < often.expected < often.spent.high, (curve.measure.title, name)


# Where one overtakes another


def test_lines_cross_where_the_second_first_rises_above_the_first() -> None:
    rates = [0.0, 0.2, 0.4]
    assert crossing_of(rates, np.array([1.0, 0.6, 0.2]), np.array([0.8, 0.7, 0.6])) == pytest.approx(0.2 * 2 / 3)
    assert crossing_of(rates, np.array([1.0, 0.6, 0.2]), np.array([0.9, 0.5, 0.1])) == math.inf
    assert crossing_of(rates, np.array([0.8, 0.6, 0.2]), np.array([0.9, 0.5, 0.1])) == -math.inf
    assert crossing_of(rates, np.array([0.9, 0.6, 0.2]), np.array([0.9, 0.7, 0.3])) == 0.0


def test_rounding_alone_lets_nobody_overtake() -> None:
    assert crossing_of([0.0, 0.5], np.array([1.0, 1.0]), np.array([1.0 + 1e-13, 1.0])) == math.inf


def test_repetitions_that_all_say_the_same_leave_no_doubt_where_lines_cross() -> None:
    cheap_at_first = Trials(np.tile([10.0, 40.0], (8, 1)), np.ones((8, 2)))
    steady = Trials(np.tile([20.0, 20.0], (8, 1)), np.ones((8, 2)))
    result = crossing([0.0, 0.4], cheap_at_first, steady, resamples=200)
    assert result.rate == pytest.approx(0.4 * 0.05 / (0.05 + 0.025))
    assert (result.low, result.high, result.never) == (result.rate, result.rate, 0.0)


def test_a_crossing_that_some_resamples_lack_has_an_open_end() -> None:
    solved = np.ones((6, 2))
    first = Trials(np.column_stack([np.full(6, 10.0), [15.0, 15.0, 15.0, 15.0, 15.0, 120.0]]), solved)
    second = Trials(np.full((6, 2), 20.0), solved)
    result = crossing([0.0, 0.4], first, second, resamples=500)
    assert 0 < result.rate < 0.4
    assert result.high == math.inf
    assert 0.2 < result.never < 0.5, "one of six is not drawn in (5/6)^6 = a third of the resamples"


def test_a_crossing_is_drawn_by_instance_where_a_pack_has_several() -> None:
    """Rows of the grid are what is resampled: repetitions of the sole instance, else instances with all their repetitions."""
    rows = [
        (f"{plan}-{name}-{instance}-{n}", instance, n, name, plan, 100.0 * n, "solved" if instance == "a" else "wrong")
        for plan in ("none", "often")
        for name in ("one", "other")
        for instance in ("a", "b")
        for n in (1, 2, 3)
        if (plan, name, instance, n) != ("often", "other", "b", 3)
    ]
    columns = ["trial", "instance", "repetition", "architecture", "plan", "tokens", "outcome"]
    trials = pd.DataFrame(rows, columns=columns)
    result = trials_in_both(trials, ("one", "other"), {"none": 0.0, "often": 0.2}, "tokens")
    assert result["one"].spent.tolist() == [[600.0, 600.0], [300.0, 300.0]], "b's third repetition is not whole"
    assert result["one"].solved.tolist() == [[3.0, 3.0], [0.0, 0.0]]
    sole = trials_in_both(trials[trials["instance"] == "a"], ("one", "other"), {"none": 0.0, "often": 0.2}, "tokens")
    assert sole["other"].spent.tolist() == [[100.0, 100.0], [200.0, 200.0], [300.0, 300.0]]
