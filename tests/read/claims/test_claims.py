"""Verdicts follow from the data and from nothing else, and say what they are of."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from records import accepted, called, committed, fault, recovered, rejected, run_of, trial

from bench.common.errors import ResultsError
from bench.read.analysis.claim import DirectionClaim, RatioClaim
from bench.read.analysis.frames import Run
from bench.read.analysis.published import Published, load_published
from bench.read.analysis.results import Results
from bench.read.analysis.statistics import mean_of, required_pairs, share_of
from bench.read.claims.judging import claims_sentence
from bench.read.claims.sample_size import pairs_after_correction, trials_without_counterexample
from bench.read.claims.table import claims_tables, verdict_finding, verdict_lines
from bench.read.claims.trace import claim_named, trace
from bench.read.claims.verdicts import SIMULATED, VERDICTS, Judgement, counts, family_of, judge_all
from bench.read.render.table import Table, comma_separated, markdown
from bench.record.events import Answered, Event, Faulted, Stage
from bench.record.record import Outcome, TrialRecord

K8S, DEBUGGING = "k8s_oomkill", "multi_file_debugging"
STATIC_ABOVE, BELOW_MONOLITHIC = "retry.rca.static-above-monolithic", "retry.rca.runtime-below-monolithic"
STATIC_RATIO = "retry.rca.static-to-monolithic"
PUBLISHED = load_published()
PAPERS = {"monolithic": 904, "static": 1632, "runtime_structured": 436}
COMPARISONS = [each for each in PUBLISHED.claim if isinstance(each, DirectionClaim | RatioClaim)]

Values = Mapping[str, Sequence[float]]


def run_with(
    folder: Path, values: Values, measure: str = "first_round_counted_tokens", plan: str = "paper", scenario: str = K8S
) -> Run:
    """A run whose trials have these values of a measure, an architecture's in the order of its repetitions."""
    names = [(name, repetition) for name, numbers in values.items() for repetition in range(1, len(numbers) + 1)]
    run = run_of(folder / "run", [trial(name, plan, n, scenario=scenario, timing="live") for name, n in names])
    places = zip(run.trials["architecture"], run.trials["repetition"], strict=True)
    return replace(run, trials=run.trials.assign(**{measure: [float(values[name][n - 1]) for name, n in places]}))


def spread(centre: float, n: int) -> list[float]:
    """Values whose mean is the centre; each centre has a pattern of its own, so that differences and ratios vary as well."""
    draws = [random.Random(f"{centre} {place}").uniform(-0.01, 0.01) for place in range(n)]
    return [centre * (1 + draw - sum(draws) / n) for draw in draws]


def like_the_paper(n: int = 10) -> dict[str, list[float]]:
    return {name: spread(tokens, n) for name, tokens in PAPERS.items()}


def judged(run: Run, published: Published = PUBLISHED) -> dict[str, Judgement]:
    return {judgement.claim.id: judgement for judgement in judge_all(run, published)}


def judged_of(
    folder: Path, values: Values, measure: str = "first_round_counted_tokens", plan: str = "paper"
) -> dict[str, Judgement]:
    return judged(run_with(folder, values, measure, plan))


def judged_by(folder: Path, records: Sequence[TrialRecord]) -> dict[str, Judgement]:
    return judged(run_of(folder / "run", records))


# Directions and ratios


def test_data_like_the_papers_hold_to_its_directions_and_ratios(tmp_path: Path) -> None:
    judgements = judged_of(tmp_path, like_the_paper())
    retries = {name: judgement.verdict for name, judgement in judgements.items() if name.startswith("retry.rca.")}
    assert len(retries) == 6 and set(retries.values()) == {"holds"}


def means_of(claim: DirectionClaim | RatioClaim) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Values that are the paper's for the two architectures of a claim, and the same under each other's names."""
    first, second = (claim.higher, claim.lower) if isinstance(claim, DirectionClaim) else (claim.of, claim.to)
    values, other = (spread(PUBLISHED.cell(claim.scenario, claim.row, name).mean, 10) for name in (first, second))
    return {first: values, second: other}, {first: other, second: values}


@pytest.mark.parametrize("claim", COMPARISONS, ids=lambda claim: claim.id)
def test_inverted_data_invert_the_verdict(claim: DirectionClaim | RatioClaim, tmp_path: Path) -> None:
    """The same values under each other's names: nothing but the data decides."""
    straight, inverted = (
        judged(run_with(tmp_path / str(number), values, claim.measure, claim.plan, claim.scenario))[claim.id]
        for number, values in enumerate(means_of(claim))
    )
    assert (straight.verdict, inverted.verdict) == ("holds", "contradicted")
    assert straight.p == inverted.p


@pytest.mark.parametrize(("part", "verdict"), [(0.25, "holds, size differs"), (0.482, "holds"), (0.9, "holds, size differs")])
def test_a_saving_of_another_size_than_claimed_holds_in_direction(part: float, verdict: str, tmp_path: Path) -> None:
    judgements = judged_of(tmp_path, {"monolithic": spread(1000, 10), "runtime_structured": spread(1000 * part, 10)})
    assert judgements["retry.rca.runtime-to-monolithic"].verdict == verdict
    assert judgements[BELOW_MONOLITHIC].verdict == "holds", "a direction has no size"


def test_what_could_be_by_chance_is_inconclusive_and_says_how_many_would_decide(tmp_path: Path) -> None:
    wide = {"monolithic": [900, 1000, 800, 950, 850, 900] * 2, "static": [1200, 700, 1100, 750, 1000, 850] * 2}
    for name in (STATIC_ABOVE, STATIC_RATIO):
        judgement = judged_of(tmp_path / name, wide)[name]
        assert judgement.verdict == "inconclusive" and "does not exclude" in judgement.reason
        assert judgement.measured and judgement.measured.needed and judgement.measured.needed > judgement.measured.n == 12


def test_a_direction_and_a_ratio_need_a_test_that_survives_the_correction(tmp_path: Path) -> None:
    """Of five pairs no p below 2/32 can come, however far apart the arms lie: the interval alone does not do."""
    few = judged_of(tmp_path / "few", like_the_paper(5))
    assert few[STATIC_ABOVE].measured.side_of(0) == 1  # type: ignore[union-attr]
    for name in (STATIC_ABOVE, STATIC_RATIO):
        assert few[name].in_words == "cannot be decided with 5 pairs (floor)" and "after Holm's" in few[name].reason
        assert few[name].measured.needed == 9, "2 / 2^9 is the first below 0.05 / 10"  # type: ignore[union-attr]
    enough = judged_of(tmp_path / "enough", like_the_paper(9))
    assert enough[STATIC_ABOVE].verdict == enough[STATIC_RATIO].verdict == "holds"
    assert enough[STATIC_ABOVE].p == enough[STATIC_RATIO].p == pytest.approx(10 * 2 / 2**9)


def test_a_p_at_its_floor_is_said_to_be_there_and_no_other(tmp_path: Path) -> None:
    assert judged_of(tmp_path / "apart", like_the_paper(9))[STATIC_ABOVE].floor == 2 / 2**9
    values = {**like_the_paper(9), "static": [*spread(1632, 8), 800.0]}  # one pair lies the other way
    assert judged_of(tmp_path / "not", values)[STATIC_ABOVE].floor is None
    [verdicts, *_] = tables_of(run_with(tmp_path / "shown", like_the_paper()))
    assert cell(verdicts, STATIC_ABOVE, "p (Holm)") == "0.020 (floor), errs in 11.2%", "as often as its calibration says"
    assert any("2/2^N" in note and "0.020 at N=10" in note for note in verdicts.notes)


def test_the_family_is_all_comparisons_that_were_declared_whether_measured_or_not(tmp_path: Path) -> None:
    assert len(family_of(PUBLISHED.claim)) == 10, "a ratio and the direction of the same values are one"
    alone = PUBLISHED.model_copy(update={"claim": tuple(each for each in PUBLISHED.claim if each.id == STATIC_ABOVE)})
    run = run_with(tmp_path, like_the_paper(6))
    assert judged(run, alone)[STATIC_ABOVE].verdict == "holds"
    assert judged(run)[STATIC_ABOVE].verdict == "cannot be decided", "2 / 2^6 by 10"


@pytest.mark.parametrize("n", [2, 12])
def test_nothing_is_concluded_from_an_interval_without_width(n: int, tmp_path: Path) -> None:
    equal = {name: [float(tokens)] * n for name, tokens in PAPERS.items()}
    proportional = {name: [tokens * (1 + place / 7) for place in range(n)] for name, tokens in PAPERS.items()}
    judgements = judged_of(tmp_path / "equal", equal)
    verdict = "cannot be decided" if n == 2 else "inconclusive"
    assert {judgements[name].verdict for name in (STATIC_ABOVE, STATIC_RATIO)} == {verdict}
    assert all("no width" in judgements[name].reason for name in (STATIC_ABOVE, STATIC_RATIO))
    assert judgements[STATIC_ABOVE].measured.needed is None, "more equal values would not decide"  # type: ignore[union-attr]
    assert "no width" in judged_of(tmp_path / "proportional", proportional)[STATIC_RATIO].reason


def test_one_value_concludes_nothing(tmp_path: Path) -> None:
    judgements = judged_of(tmp_path, {name: [float(tokens)] for name, tokens in PAPERS.items()})
    assert (
        judgements[STATIC_ABOVE].in_words == "cannot be decided with 1 pair (floor)"
        and "N=1" in judgements[STATIC_ABOVE].reason
    )


# Shares that are said to be none


def answers(wrong: int, of: int) -> list[TrialRecord]:
    outcomes: list[Outcome] = ["wrong" if n <= wrong else "solved" for n in range(1, of + 1)]
    return [
        trial("runtime_structured", "none", n, outcome, scenario=K8S, timing="live") for n, outcome in enumerate(outcomes, 1)
    ]


@pytest.mark.parametrize(
    ("wrong", "of", "words"),
    [
        (1, 40, "counterexample found (1 of 40)"),
        (2, 2, "counterexample found (2 of 2)"),
        (1, 1, "counterexample found (1 of 1)"),
        (0, 40, "holds"),
        (0, 10, "inconclusive"),
        (0, 0, "not measured"),
    ],
)
def test_a_share_said_to_be_none_falls_by_one_counterexample(wrong: int, of: int, words: str, tmp_path: Path) -> None:
    records = [*answers(wrong, of), trial("runtime_structured", "none", 99, "gave_up", scenario=K8S, timing="live")]
    judgement = judged_by(tmp_path, records)["assumption.rca.accepted-answers-are-right"]
    assert judgement.in_words == words
    if words == "inconclusive":
        assert judgement.measured and judgement.measured.needed == trials_without_counterexample(0.1) == 35


def test_outputs_of_one_repetition_are_no_independent_ones(tmp_path: Path) -> None:
    """Forty right outputs of four repetitions do not show what forty of forty would."""
    events = outputs(*["schema"] * 10)
    few = [trial("runtime_structured", "none", n, "gave_up", events, scenario=K8S, timing="live") for n in range(1, 5)]
    judgement = judged_by(tmp_path, few)["assumption.rca.schema-catches-wrong-outputs"]
    assert judgement.measured and judgement.measured.n == 40 and judgement.measured.high and judgement.measured.high > 0.4
    assert judgement.verdict == "inconclusive"


# What is counted


def outputs(*reasons: str) -> list[Event]:
    """A runtime-structured trial's first outputs, one a subtask, each accepted or rejected for a reason."""
    result: list[Event] = []
    for number, reason in enumerate(reasons, 1):
        name = "anomaly_classification" if number == 1 else f"s{number}"
        result += [called(number, name), rejected(number, name, reason) if reason else accepted(number, name)]
    return result


def test_wrong_outputs_are_wrong_by_form_or_by_a_check(tmp_path: Path) -> None:
    made = [outputs("schema", "check", "insufficient", ""), outputs("", "found_wrong", "", "not_json")]
    records = [
        trial("runtime_structured", "none", i, "gave_up", first, scenario=K8S, timing="live") for i, first in enumerate(made, 1)
    ]
    judgements = judged_by(tmp_path, records)
    shares = {
        name: judgements[name].measured for name in judgements if judgements[name].measured and name.startswith("assumption")
    }
    assert {name: (share.basis.k, share.basis.n) for name, share in shares.items() if share} == {  # type: ignore[union-attr]
        "assumption.rca.schema-catches-wrong-outputs": (2, 4),
    }


def wrong_value(*stages: Stage) -> list[Event]:
    return [replace(each, effect="wrong_value") for each in fault(*stages) if isinstance(each, Faulted)]


def test_the_weakest_assumption_falls_by_what_is_wrong_and_passes(tmp_path: Path) -> None:
    events = [
        *(called(1, "a"), accepted(1, "a"), committed(1, "a")),
        *(*wrong_value("planned", "delivered"), called(2, "b"), accepted(2, "b"), committed(2, "b", made_from=[("a", 1)])),
        *(Answered((("a", 1), ("b", 1))), *wrong_value("undetected")),
    ]
    outcomes: list[Outcome] = ["wrong", "wrong", "wrong", "solved"]
    records = [
        trial("runtime_structured", "plausible", i, outcome, events, scenario=K8S, timing="live")
        for i, outcome in enumerate(outcomes, 1)
    ]
    judgement = judged_by(tmp_path, records)["assumption.rca.no-silent-corruption"]
    assert judgement.in_words == "counterexample found (3 of 4)"
    assert judgement.measured and (judgement.measured.value, judgement.measured.n) == (0.75, 4), (
        "whatever the fault plan is called"
    )


# What cannot be compared


def test_a_simulated_model_is_judged_by_nothing(tmp_path: Path) -> None:
    records = [trial(name, plan, n, scenario=K8S) for name in PAPERS for plan in ("none", "paper") for n in range(1, 11)]
    judgements = judged_by(tmp_path, records)
    measured = [judgement for judgement in judgements.values() if judgement.measured]
    assert len(measured) > 5 and {(each.verdict, each.reason) for each in measured} == {("not comparable", SIMULATED)}
    assert {judgement.verdict for judgement in judgements.values()} == {"not comparable", "not measured"}
    assert {judgement.p for judgement in judgements.values()} == {None}


# What is not there


def test_arms_that_are_equal_in_every_pair_are_on_no_side(tmp_path: Path) -> None:
    judgement = judged_of(tmp_path, {"static": [900.0] * 12, "monolithic": [900.0] * 12})[STATIC_ABOVE]
    assert judgement.verdict == "cannot be decided"
    assert judgement.measured and (judgement.measured.value, judgement.measured.needed) == (0.0, None)


def test_a_run_in_which_all_trials_failed_measures_nothing_and_says_so(tmp_path: Path) -> None:
    records = [trial(name, plan, 1, "error", scenario=K8S, reason="no route") for name in PAPERS for plan in ("none", "paper")]
    judgements = judged_by(tmp_path, records)
    assert {judgement.verdict for judgement in judgements.values()} == {"not measured"}
    assert "was graded" in judgements[STATIC_ABOVE].reason


def test_what_the_run_does_not_hold_is_not_measured_with_the_reason(tmp_path: Path) -> None:
    judgements = judged_of(tmp_path, {"static": [1600, 1650]})
    assert judgements["tokens.debugging.runtime-above-monolithic"].reason == f"the run has no scenario {DEBUGGING}"
    assert judgements["tokens.rca.runtime-above-monolithic"].reason == "the run has no fault plan none"
    assert judgements[STATIC_ABOVE].reason == "the run has no architecture monolithic"
    assert len(judgements) == len(PUBLISHED.claim), "none is left out"


def test_trials_without_the_measure_are_left_out_and_none_at_all_is_not_measured(tmp_path: Path) -> None:
    values = like_the_paper(10)
    values["static"][0] = float("nan")
    assert judged_of(tmp_path / "one", values)[STATIC_ABOVE].measured.n == 9  # type: ignore[union-attr]
    values["static"] = [float("nan")] * 10
    judgement = judged_of(tmp_path / "all", values)[STATIC_ABOVE]
    assert (judgement.verdict, judgement.reason) == (
        "not measured",
        "no trial of static under plan paper has first_round_counted_tokens",
    )


def test_values_without_a_counterpart_are_not_measured(tmp_path: Path) -> None:
    nan = float("nan")
    judgement = judged_of(tmp_path, {"static": [1600, nan], "monolithic": [nan, 900]})[STATIC_ABOVE]
    assert judgement.verdict == "not measured" and "no pair" in judgement.reason


def test_every_verdict_is_one_of_nine() -> None:
    structure = ("holds", "holds, size differs", "contradicted", "decided by sizes", "counterexample found", "inconclusive")
    assert (*structure, "cannot be decided", "not comparable", "not measured") == VERDICTS
    assert counts([]) == dict.fromkeys(VERDICTS, 0)


# How many would decide


def test_the_pairs_after_the_correction_are_enough_for_the_test_and_for_the_spread() -> None:
    assert pairs_after_correction(mean_of([100.0, 100.1, 99.9]), 10, 0.05) == 9
    wide = pairs_after_correction(mean_of([100.0, 300.0, -100.0]), 10, 0.05)
    assert wide is not None and wide > 9
    assert pairs_after_correction(mean_of([5.0]), 10, 0.05) is None
    assert pairs_after_correction(mean_of([0.0, 0.0]), 10, 0.05) is None
    assert pairs_after_correction(mean_of([5.0, 5.0]), 10, 0.05) is None


def test_more_pairs_decide_where_more_is_asked() -> None:
    pilot = mean_of([100.0, 300.0, -100.0, 200.0])
    needed = [pairs for family in (1, 10, 100) if (pairs := pairs_after_correction(pilot, family, 0.05))]
    plain = required_pairs(125.0, pilot)
    assert plain is not None and needed[0] == plain.cautious
    assert len(needed) == 3 and needed == sorted(set(needed))


@pytest.mark.parametrize("tolerance", [0.01, 0.1, 0.5])
def test_the_trials_without_a_counterexample_are_the_first_that_suffice(tolerance: float) -> None:
    enough = trials_without_counterexample(tolerance)
    before, after = (share_of(0, n).high for n in (enough - 1, enough))
    assert before is not None and after is not None and after <= tolerance < before


# Shown


def tables_of(run: Run) -> list[Table]:
    return claims_tables(run, judge_all(run, PUBLISHED))


def cell(table: Table, claim: str, column: str) -> str:
    [row] = [row for row in table.texts() if row[0] == claim]
    return row[table.columns.index(column)]


def test_each_claim_by_each_model_has_a_row_or_is_named_as_not_measured(tmp_path: Path) -> None:
    first = run_with(tmp_path, like_the_paper(3))
    other = first.trials.assign(model="other", trial="o" + first.trials["trial"])
    run = replace(first, trials=pd.concat([first.trials, other]))
    tables = tables_of(run)
    assert [table.name for table in tables] == ["claims", "claims_populations"]
    for model in ("m", "other"):
        rows = [row[0] for table in tables for row in table.texts() if row[1] == model]
        notes = " ".join(note for table in tables for note in table.notes if note.startswith(f"{model}: not measured"))
        named = [claim.id for claim in PUBLISHED.claim if claim.id in notes.replace(",", "").split()]
        assert sorted([*rows, *named]) == sorted(claim.id for claim in PUBLISHED.claim)
    for table in tables:
        for text in (markdown(table), comma_separated(table)):
            assert "nan" not in text.replace("Finance", "").lower().split() and "None" not in text


def test_the_lines_begin_with_the_tally_and_say_a_missing_thing_once(tmp_path: Path) -> None:
    run = run_with(tmp_path, like_the_paper())
    judgements = judge_all(run, PUBLISHED)
    lines = list(verdict_lines(run, judgements))
    expected = "; ".join(f"{name}: {n}" for name, n in counts(judgements).items())
    assert lines[0] == f"m, 21 claims: {expected}"
    assert any(line.startswith("  holds  ") and "retry.rca.static-above-monolithic: Static" in line for line in lines)
    assert sum(f"no scenario {DEBUGGING}" in line for line in lines) == 1


def test_the_summary_has_one_sentence_of_what_was_judged_and_none_of_a_simulated_model(tmp_path: Path) -> None:
    run = run_with(tmp_path / "live", like_the_paper())
    judgements = judge_all(run, PUBLISHED)
    result = verdict_finding(run, judgements)
    assert result and (result.text, result.table) == ("Of the 6 claims of the paper that were measured, 6 hold.", "claims")
    sole = verdict_finding(run, [next(each for each in judgements if each.measured)])
    assert sole and sole.text == "Of the 1 claim of the paper that was measured, 1 holds."
    simulated = run_of(tmp_path / "simulated", [trial(name, "paper", n, scenario=K8S) for name in PAPERS for n in (1, 2)])
    assert verdict_finding(simulated, judge_all(simulated, PUBLISHED)) is None
    assert claims_sentence(Results(simulated)) == ""
    assert claims_sentence(Results(run)).endswith(
        "): 6 of 6 claims come out as the paper says, 0 against it, 0 open. "
        "Of the 6 on a retry, 0 come out so over the whole round, and 0 against it."
    ), "the whole rounds of all arms are equal here"


# The trace


def traced_sum(run: Run, name: str, side: str) -> int:
    [(_, result)] = trace(run, claim_named(PUBLISHED, name))
    assert isinstance(result, tuple)
    of_side = [each for each in result if each.item.side == side]
    return sum(call["tokens_in"] + call["tokens_out"] for each in of_side for call in each.calls if call["cause"] != "first")


def test_a_claims_number_is_the_sum_of_the_calls_that_its_trace_lists(tmp_path: Path) -> None:
    values = {"static": [1600, 1650, 1640, 1630], "monolithic": [900, 910, 905, 890]}
    run = run_of(
        tmp_path / "run",
        [
            trial(name, "paper", n, events=recovered(tokens - 20), scenario=K8S, timing="live")
            for name, numbers in values.items()
            for n, tokens in enumerate(numbers, 1)
        ],
    )
    assert traced_sum(run, STATIC_ABOVE, "static") == sum(values["static"])
    measured = judged(run)[STATIC_ABOVE].measured
    assert measured and measured.value == (sum(values["static"]) - sum(values["monolithic"])) / 4


def test_a_rate_is_traced_to_its_very_calls(tmp_path: Path) -> None:
    records = [trial("runtime_structured", "none", 1, "gave_up", outputs("schema", "check"), scenario=K8S)]
    run = run_of(tmp_path / "run", records)
    [(_, result)] = trace(run, claim_named(PUBLISHED, "assumption.rca.schema-catches-wrong-outputs"))
    assert isinstance(result, tuple)
    assert [(each.item.value, [call["call"] for call in each.calls]) for each in result] == [(0.0, [1]), (1.0, [2])]


def test_an_unknown_claim_is_answered_with_the_nearest() -> None:
    with pytest.raises(ResultsError, match=f"did you mean '{STATIC_RATIO}'"):
        claim_named(PUBLISHED, "retry.rca.static-to-monolitic")
