"""Verdicts follow from the data and from nothing else, and say what they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from records import accepted, called, committed, fault, rejected, run_of, trial

from bench.analysis.claims.claim import CellClaim
from bench.analysis.claims.published import load_published
from bench.analysis.claims.ranges import PublishedRange, range_of
from bench.analysis.claims.sample_size import pairs_for_the_family, trials_for_the_rate
from bench.analysis.claims.trace import claim_named, trace
from bench.analysis.claims.verdicts import Judgement, counts, judge_all
from bench.analysis.frames import Run
from bench.analysis.statistics import mean_of, share_of
from bench.errors import ConfigError, ResultsError
from bench.experiment.record import Outcome, TrialRecord
from bench.render.latex import latex
from bench.render.table import comma_separated, markdown
from bench.report.claims_table import claims_table, verdict_lines
from bench.runtime.events import Answered, Event, Faulted, Stage

K8S, DEBUGGING = "k8s_oomkill", "multi_file_debugging"
STATIC_ABOVE = "retry.rca.static-above-monolithic"
PUBLISHED = load_published()
PAPERS = {"monolithic": 904, "static": 1632, "runtime_structured": 436}


def retried(tokens: int) -> list[Event]:
    """A trial whose retry tokens are these: b was struck, and asked for again."""
    return [
        *(called(1, "a"), accepted(1, "a"), committed(1, "a")),
        *(*fault("planned", "delivered"), called(2, "b"), rejected(2, "b"), *fault("detected")),
        *(called(3, "b", cause="retry", tokens=(tokens - 20, 20), attempt=2), accepted(3, "b")),
        *(committed(3, "b", made_from=[("a", 1)]), Answered((("a", 1), ("b", 1))), *fault("recovered")),
    ]


def spread(centre: int, n: int) -> list[int]:
    """Values around a centre that differ a little, each the same on either side."""
    return [centre + (3 * (repetition // 2) + 1) * (1 if repetition % 2 else -1) for repetition in range(n)]


def arms(
    retry_tokens: Mapping[str, Sequence[int]], scenario: str = K8S, outcome: Outcome = "solved", timing: str = "live"
) -> list[TrialRecord]:
    return [
        trial(name, "paper", repetition, outcome, retried(tokens), scenario=scenario, timing=timing)
        for name, values in retry_tokens.items()
        for repetition, tokens in enumerate(values, 1)
    ]


def like_the_paper(n: int = 10) -> dict[str, list[int]]:
    return {name: spread(tokens, n) for name, tokens in PAPERS.items()}


def judged(run: Run) -> dict[str, Judgement]:
    return {one.claim.id: one for one in judge_all(run, PUBLISHED)}


def judged_of(folder: Path, records: Sequence[TrialRecord]) -> dict[str, Judgement]:
    return judged(run_of(folder / "run", records))


# Verdicts


def test_data_like_the_papers_reproduce_its_directions_ratios_and_cells(tmp_path: Path) -> None:
    found = judged_of(tmp_path, arms(like_the_paper()))
    rca = [one for name, one in found.items() if name.startswith("retry.rca.") or name.startswith("table2.retry_tokens.")]
    assert len(rca) == 9
    assert {one.claim.id: one.verdict for one in rca if one.verdict != "reproduced"} == {}


def test_inverted_data_invert_the_verdicts(tmp_path: Path) -> None:
    """The same trials under each other's names: nothing but the data decides."""
    values = like_the_paper()
    swapped = {**values, "static": values["runtime_structured"], "runtime_structured": values["static"]}
    found = judged_of(tmp_path, arms(swapped))
    for name in (STATIC_ABOVE, "retry.rca.runtime-below-monolithic", "retry.rca.runtime-below-static"):
        assert found[name].verdict == "contradicted", name
    for name in ("retry.rca.runtime-to-static", "table2.retry_tokens.static", "table2.retry_tokens.runtime_structured"):
        assert found[name].verdict == "contradicted", name
    assert found["table2.retry_tokens.monolithic"].verdict == "reproduced"


def test_what_one_could_be_by_chance_is_inconclusive_and_says_how_many_would_decide(tmp_path: Path) -> None:
    wide = {"monolithic": [900, 1000, 800, 950, 850, 900] * 2, "static": [1200, 700, 1100, 750, 1000, 850] * 2}
    one = judged_of(tmp_path, arms(wide))[STATIC_ABOVE]
    assert one.verdict == "inconclusive" and one.reason == "the interval of the paired difference holds 0"
    assert one.measured and one.measured.needed and one.measured.needed > one.measured.n == 12
    ratio = judged_of(tmp_path / "again", arms(wide))["retry.rca.static-to-monolithic"]
    assert ratio.verdict == "contradicted", "static lies far from 1.805 times monolithic, whichever is above"


def test_a_direction_needs_a_test_that_survives_the_correction(tmp_path: Path) -> None:
    """Of five pairs no p below 2/32 can come, however far apart the arms lie: the interval alone does not do."""
    few = judged_of(tmp_path / "few", arms(like_the_paper(5)))[STATIC_ABOVE]
    assert few.verdict == "inconclusive" and few.measured and few.measured.low and few.measured.low > 0
    assert "after Holm's correction" in few.reason
    assert few.measured.needed == 9, "10 directions: 2 / 2^9 is the first below 0.05 / 10"
    enough = judged_of(tmp_path / "enough", arms(like_the_paper(9)))[STATIC_ABOVE]
    assert enough.verdict == "reproduced"
    assert enough.p == pytest.approx(10 * 2 / 2**9)


def test_the_family_is_all_that_was_declared_whether_measured_or_not(tmp_path: Path) -> None:
    published = PUBLISHED
    alone = published.model_copy(update={"claim": tuple(one for one in published.claim if one.id == STATIC_ABOVE)})
    run = run_of(tmp_path / "run", arms(like_the_paper(6)))
    assert next(one for one in judge_all(run, alone) if one.claim.id == STATIC_ABOVE).verdict == "reproduced"
    assert judged(run)[STATIC_ABOVE].verdict == "inconclusive"


def test_trials_that_gave_up_price_failing_and_conclude_nothing(tmp_path: Path) -> None:
    found = judged_of(tmp_path, arms(like_the_paper(), outcome="gave_up"))
    for name in (STATIC_ABOVE, "retry.rca.static-to-monolithic", "table2.retry_tokens.static"):
        assert found[name].verdict == "inconclusive" and "gave up" in found[name].reason, name
        assert found[name].measured and found[name].measured.needed is None  # type: ignore[union-attr]


def test_half_of_the_trials_giving_up_still_leaves_a_verdict(tmp_path: Path) -> None:
    records = arms(like_the_paper())
    records = [replace(one, outcome="gave_up", grade=None) if one.repetition > 5 else one for one in records]
    assert judged_of(tmp_path, records)[STATIC_ABOVE].verdict == "reproduced"


def test_a_rate_is_judged_by_its_own_interval(tmp_path: Path) -> None:
    def solved(n: int, of: int) -> str:
        records = [trial("static", "none", i, "solved" if i <= n else "wrong", scenario=K8S) for i in range(1, of + 1)]
        return judged_of(tmp_path / f"{n}-{of}", records)["table2.correct.static"].verdict

    assert solved(40, 40) == "reproduced"
    assert solved(10, 10) == "inconclusive", "ten of ten leave 72% open"
    assert solved(4, 10) == "contradicted"


# What is counted


def outputs(*reasons: str) -> list[Event]:
    """A runtime-structured trial's first outputs, one a subtask, each accepted or rejected for a reason."""
    found: list[Event] = []
    for number, reason in enumerate(reasons, 1):
        name = "anomaly_classification" if number == 1 else f"s{number}"
        found += [called(number, name), rejected(number, name, reason) if reason else accepted(number, name)]
    return found


def test_natural_failures_are_of_form_and_wrong_outputs_of_form_or_a_check(tmp_path: Path) -> None:
    made = [outputs("schema", "check", "insufficient", ""), outputs("", "found_wrong", "", "not_json")]
    records = [trial("runtime_structured", "none", i, "gave_up", one, scenario=K8S) for i, one in enumerate(made, 1)]
    found = judged_of(tmp_path, records)
    shares = {
        name: found[name].measured for name in found if found[name].measured and name.startswith(("natural", "assumption"))
    }
    assert {name: (one.basis.k, one.basis.n) for name, one in shares.items() if one} == {  # type: ignore[union-attr]
        "natural.rca": (2, 8),
        "natural.rca.only-anomaly-classification": (1, 2),
        "assumption.rca.schema-catches-wrong-outputs": (2, 4),
    }


def wrong_value(*stages: Stage) -> list[Event]:
    return [replace(one, effect="wrong_value") for one in fault(*stages) if isinstance(one, Faulted)]


def test_the_weakest_assumption_is_contradicted_by_what_is_wrong_and_passes(tmp_path: Path) -> None:
    events = [
        *(called(1, "a"), accepted(1, "a"), committed(1, "a")),
        *(*wrong_value("planned", "delivered"), called(2, "b"), accepted(2, "b"), committed(2, "b", made_from=[("a", 1)])),
        *(Answered((("a", 1), ("b", 1))), *wrong_value("undetected")),
    ]
    outcomes: list[Outcome] = ["wrong", "wrong", "wrong", "solved"]
    records = [trial("runtime_structured", "plausible", i, one, events, scenario=K8S) for i, one in enumerate(outcomes, 1)]
    one = judged_of(tmp_path, records)["assumption.rca.no-silent-corruption"]
    assert one.verdict == "contradicted"
    assert one.measured and (one.measured.value, one.measured.n) == (0.75, 4), "whatever the fault plan is called"


def test_framework_time_is_a_part_of_seconds_that_were_lived_through(tmp_path: Path) -> None:
    def run(timing: str) -> Judgement:
        records = [
            replace(trial("static", "none", i, scenario=K8S, timing=timing), api_seconds=8.2, waiting_seconds=0.0)
            for i in range(1, 6)
        ]
        records = [replace(one, framework_seconds=1.8 + 0.01 * one.repetition) for one in records]
        return judged_of(tmp_path / timing, records)["framework.rca.static"]

    assert run("live").verdict == "reproduced"
    assert run("simulated").verdict == "not measured"


# Odd data


@pytest.mark.parametrize("n", [1, 2])
def test_one_value_concludes_nothing_and_equal_values_are_defined(tmp_path: Path, n: int) -> None:
    found = judged_of(tmp_path, arms({name: [tokens] * n for name, tokens in PAPERS.items()}))
    cell, direction = found["table2.retry_tokens.static"], found[STATIC_ABOVE]
    assert cell.verdict == ("inconclusive" if n == 1 else "reproduced")
    assert direction.verdict == "inconclusive"


def test_arms_that_are_equal_in_every_pair_are_on_no_side(tmp_path: Path) -> None:
    one = judged_of(tmp_path, arms({"static": [900] * 12, "monolithic": [900] * 12}))[STATIC_ABOVE]
    assert one.verdict == "inconclusive"
    assert one.measured and (one.measured.value, one.measured.needed) == (0.0, None)


def test_a_run_in_which_all_trials_failed_measures_nothing_and_says_so(tmp_path: Path) -> None:
    records = [trial(name, plan, 1, "error", scenario=K8S, reason="no route") for name in PAPERS for plan in ("none", "paper")]
    found = judged_of(tmp_path, records)
    assert {one.verdict for one in found.values()} == {"not measured"}
    assert "was graded" in found["table2.tokens.static"].reason


def test_what_the_run_does_not_hold_is_not_measured_with_the_reason(tmp_path: Path) -> None:
    found = judged_of(tmp_path, arms({"static": [1600, 1650]}))
    assert found["table1.tokens.static"].reason == f"the run has no scenario {DEBUGGING}"
    assert found["table2.tokens.static"].reason == "the run has no fault plan none"
    assert found["table2.retry_tokens.monolithic"].reason == "the run has no architecture monolithic"
    assert len(found) == len(PUBLISHED.claims), "none is left out"


def test_values_without_a_counterpart_conclude_nothing(tmp_path: Path) -> None:
    records = [*arms({"static": [1600]}), *(replace(one, repetition=7) for one in arms({"monolithic": [900]}))]
    assert "no pair" in judged_of(tmp_path, records)[STATIC_ABOVE].reason


# The file


def test_every_cell_is_a_claim_and_every_number_of_the_paper_has_its_bounds() -> None:
    published = PUBLISHED
    assert sum(isinstance(one, CellClaim) for one in published.claims) == 40
    bounds = {one.id: range_of(published, one) for one in published.claims}
    assert None not in bounds.values()
    ratio = bounds["retry.rca.static-to-monolithic"]
    assert ratio and [round(one, 3) for one in (ratio.value, ratio.low, ratio.high)] == [1.805, 1.625, 1.986]
    own = bounds["table1.latency_seconds.monolithic"]
    assert own and own.high - own.value == pytest.approx(2.2622 * 18.38 / 10**0.5, rel=1e-3), "wider than the tolerance"


BAD = """
paper = { title = "T", source = "S", model = "M", runs = 10 }
columns = { static = "Static" }
"""
CLAIM = """
[[claim]]
id = "one"
sentence = "s"
source = "s"
kind = "direction"
scenario = "k8s_oomkill"
measure = "tokens"
higher = "static"
lower = "monolithic"
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CLAIM.replace('"tokens"', '"tokns"'), "unknown measure 'tokns': did you mean 'tokens'"),
        (CLAIM + CLAIM, "two claims are called 'one'"),
        (CLAIM.replace('"direction"', '"opinion"'), "direction"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "published.toml"
    path.write_text(BAD + text)
    with pytest.raises(ConfigError, match=said) as refused:
        load_published(path)
    assert "\n" not in str(refused.value)


# How many would decide


def test_the_pairs_for_a_family_are_enough_for_the_test_and_for_the_spread() -> None:
    assert pairs_for_the_family(mean_of([100.0, 100.1, 99.9]), 10, 0.05) == 9
    wide = pairs_for_the_family(mean_of([100.0, 300.0, -100.0]), 10, 0.05)
    assert wide is not None and wide > 9
    assert pairs_for_the_family(mean_of([5.0]), 10, 0.05) is None
    assert pairs_for_the_family(mean_of([0.0, 0.0]), 10, 0.05) is None


def test_the_trials_for_a_rate_are_those_of_the_normal_approximation() -> None:
    """By hand: (1.960 sqrt(.1 x .9) + 0.842 sqrt(.3 x .7))^2 / .2^2 = 23.6."""
    assert trials_for_the_rate(share_of(3, 10), PublishedRange(0.0, 0.0, 0.1)) == 24
    assert trials_for_the_rate(share_of(1, 10), PublishedRange(0.0, 0.0, 0.1)) is None


# Shown


def test_the_table_has_every_claim_by_every_model_and_no_nan(tmp_path: Path) -> None:
    records = [*arms(like_the_paper(3)), *(replace(one, model="other", id=f"o{one.id}") for one in arms(like_the_paper(2)))]
    run = run_of(tmp_path / "run", records)
    table = claims_table(run, judge_all(run, PUBLISHED))
    assert len(table.rows) == 2 * len(PUBLISHED.claims)
    for text in (markdown(table), latex(table), comma_separated(table)):
        assert "nan" not in text.replace("Finance", "").lower().split() and "None" not in text
    kinds = [note for note in table.notes if note.startswith("N=")]
    assert len(kinds) == len({note.split(":")[1][:20] for note in kinds}), "each kind of limit once"


def test_the_lines_begin_with_the_counts_and_say_a_missing_thing_once(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", arms(like_the_paper()))
    found = judge_all(run, PUBLISHED)
    lines = list(verdict_lines(run, found, PUBLISHED))
    assert lines[0] == f"m: {', '.join(f'{n} {name}' for name, n in counts(found).items())}, of 68 claims"
    assert sum(counts(found).values()) == 68
    assert any(line.startswith("  reproduced    retry.rca.static-above-monolithic: Static") for line in lines)
    assert sum("no scenario" in line for line in lines) == 1


# The trace


def traced_sum(run: Run, name: str, side: str) -> int:
    [(_, found)] = trace(run, claim_named(PUBLISHED, name))
    assert isinstance(found, tuple)
    of_side = [one for one in found if one.item.side == side]
    return sum(call["tokens_in"] + call["tokens_out"] for one in of_side for call in one.calls if call["cause"] != "first")


def test_a_claims_number_is_the_sum_of_the_calls_that_its_trace_lists(tmp_path: Path) -> None:
    values = like_the_paper(4)
    run = run_of(tmp_path / "run", arms(values))
    assert traced_sum(run, STATIC_ABOVE, "static") == sum(values["static"])
    one = judged(run)[STATIC_ABOVE].measured
    assert one and one.value == (sum(values["static"]) - sum(values["monolithic"])) / 4


def test_a_rate_is_traced_to_its_very_calls(tmp_path: Path) -> None:
    records = [trial("runtime_structured", "none", 1, "gave_up", outputs("schema", "check"), scenario=K8S)]
    run = run_of(tmp_path / "run", records)
    [(_, found)] = trace(run, claim_named(PUBLISHED, "natural.rca"))
    assert isinstance(found, tuple)
    assert [(one.item.value, [call["call"] for call in one.calls]) for one in found] == [(1.0, [1]), (0.0, [2])]


def test_an_unknown_claim_is_answered_with_the_nearest() -> None:
    with pytest.raises(ResultsError, match=r"did you mean 'natural\.rca'"):
        claim_named(PUBLISHED, "natural.rcs")
