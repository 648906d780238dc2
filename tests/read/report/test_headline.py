"""A report's title is its first finding: of a world, of models, of a repair, or of what was solved."""

from __future__ import annotations

import re
from pathlib import Path

from records import recovered, run_of, smooth, trial
from scorecards import CRASH, lived

from bench.read.analysis.arms import arms_of
from bench.read.compare.models import model_pairs
from bench.read.report.headline import headline_of
from bench.read.report.summary import summary_of
from bench.record.record import Outcome, TrialRecord
from bench.worlds.read.tables import world_tables


def headline(folder: Path, records: list[TrialRecord]) -> str:
    run = run_of(folder, records)
    return headline_of(run, arms_of(run), model_pairs(run))


def undisturbed(solved: dict[tuple[str, str], int], n: int = 4) -> list[TrialRecord]:
    """Trials without faults, so many of them solved by (architecture, model)."""
    return [
        trial(name, "none", repetition, "solved" if repetition <= k else "wrong", smooth(), model=model)
        for (name, model), k in solved.items()
        for repetition in range(1, n + 1)
    ]


def test_a_repair_comes_before_what_was_solved(tmp_path: Path) -> None:
    struck = [*undisturbed({("static", "m"): 4}), *repairs("static", 5)]
    assert headline(tmp_path / "run", struck) == "A repair on demo took 121 tokens with static (SIMULATED)"


def test_a_mean_of_fewer_than_five_repairs_is_no_title(tmp_path: Path) -> None:
    few = [*undisturbed({("static", "m"): 4}), *repairs("static", 5), *repairs("waves", 4)]
    assert headline(tmp_path / "few", few) == "A repair on demo took 121 tokens with static (SIMULATED)"
    fewer = [*undisturbed({("static", "m"): 4}), *repairs("static", 4)]
    assert headline(tmp_path / "fewer", fewer) == "On demo, static solved 4 of 4 trials (SIMULATED)"


def repairs(architecture: str, n: int, outcome: Outcome = "solved") -> list[TrialRecord]:
    return [trial(architecture, "paper", repetition, outcome, recovered(101)) for repetition in range(1, n + 1)]


def test_that_nothing_was_solved_stands_in_the_title(tmp_path: Path) -> None:
    lost = [*undisturbed({("static", "m"): 0}), *repairs("static", 5, "wrong")]
    assert (
        headline(tmp_path / "run", lost) == "A repair on demo took 121 tokens with static, and no trial was solved (SIMULATED)"
    )
    assert headline(tmp_path / "none", undisturbed({("a", "m"): 0})) == "No trial was solved, 0 of 4 (SIMULATED)"


def test_without_a_repair_the_architectures_that_solved_most_and_least_are_named(tmp_path: Path) -> None:
    text = headline(tmp_path / "run", undisturbed({("a", "m"): 1, ("c", "m"): 2, ("b", "m"): 4}))
    assert text == "On demo, b solved 4 of 4 trials and a 1 of 4 (SIMULATED)"


def test_an_architecture_that_did_no_damage_and_solved_nothing_is_not_told_as_the_better(tmp_path: Path) -> None:
    records = [
        lived(system="busy"),
        lived("crash", system="busy", by=(CRASH,), damage={"doubled": 1}),
        lived("crash", system="idle", by=(CRASH,), outcome="wrong"),
    ]
    text = headline(tmp_path / "run", records)
    assert text == "Under crash on shop, idle did damage in 0 of 1 trials (and solved none) and busy in 1 of 1 (SIMULATED)"


def test_damage_that_was_done_without_faults_too_stands_beside_damage_under_a_fault(tmp_path: Path) -> None:
    records = [
        lived(system="busy", damage={"doubled": 1}),
        lived(system="idle"),
        lived("crash", system="busy", by=(CRASH,), damage={"doubled": 1}),
        lived("crash", system="idle", by=(CRASH,)),
    ]
    text = headline(tmp_path / "run", records)
    clause = "idle did damage in 0 of 1 trials and busy in 1 of 1 (without faults in 1 of 1)"
    assert text == f"Under crash on shop, {clause} (SIMULATED)"


def test_a_plan_under_which_the_architectures_did_different_damage_is_told_first(tmp_path: Path) -> None:
    records = [
        *(lived("crash", system=name, by=(CRASH,)) for name in ("busy", "idle")),
        lived("stale", system="busy", by=(CRASH,), damage={"doubled": 1}),
        lived("stale", system="idle", by=(CRASH,)),
    ]
    text = headline(tmp_path / "run", records)
    assert text == "Under stale on shop, idle did damage in 0 of 1 trials and busy in 1 of 1 (SIMULATED)"


def test_the_title_says_over_all_arms_which_of_two_models_solved_more_and_the_verdict_of_compare(tmp_path: Path) -> None:
    text = headline(tmp_path / "run", undisturbed({("a", "m"): 2, ("b", "m"): 1, ("a", "big"): 18, ("b", "big"): 19}, n=20))
    says = r"big \(SIMULATED\) solved 85\.0 points more than m \(SIMULATED\) \[[0-9.]+, [0-9.]+\], "
    assert re.fullmatch(says + r"37 of 40 trials against 3 of 40, at 1\.00 times the tokens: undecided", text), text


def test_the_title_does_not_say_a_difference_that_is_none(tmp_path: Path) -> None:
    text = headline(tmp_path / "run", undisturbed({("a", "m"): 4, ("a", "big"): 4}))
    assert text == "big (SIMULATED) solved as many as m (SIMULATED), 1 of 1 trials, at 1.00 times the tokens: equal", "copies"


def test_of_models_whose_prices_are_known_the_ratio_of_the_dollars_is_told(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", undisturbed({("a", "m"): 2, ("a", "big"): 1}))
    dear = run.trials["model"].eq("big").map({True: 0.4, False: 0.1})
    priced = run.replace_frames({"trials": run.trials.assign(cost=dear.astype("float64"))})
    title = headline_of(priced, arms_of(priced), model_pairs(priced))
    assert (
        title.startswith("big (SIMULATED) solved 25.0 points fewer than m (SIMULATED) [") and "4.00 times the dollars" in title
    )


def test_three_models_are_told_beside_the_first(tmp_path: Path) -> None:
    text = headline(tmp_path / "run", undisturbed({("a", "m"): 1, ("a", "n"): 2, ("a", "big"): 4}))
    says = "n (SIMULATED) 25.0 points more (undecided) and big (SIMULATED) 75.0 points more (undecided)"
    assert text == f"Beside m (SIMULATED), which solved 1 of 4 trials: {says}"


def test_models_with_long_names_that_solved_nothing_are_told_by_what_differs_in_them(tmp_path: Path) -> None:
    models = {"qwen2.5-coder-1.5b-instruct-q4_k_m": 334, "qwen2.5-coder-0.5b-instruct-q4_k_m": 403}
    records = undisturbed({("runtime_structured", model): 0 for model in models})
    for model, cost in models.items():
        records.append(trial("runtime_structured", "paper", 1, "wrong", recovered(cost), model=model))
    text = headline(tmp_path / "run", records)
    says = "neither 1.5b (SIMULATED) nor 0.5b (SIMULATED) solved any, and 0.5b (SIMULATED) took 1.08 times the tokens"
    assert text == f"Of 2 trials each, {says}: undecided"


def test_an_instrument_only_asks_and_has_nothing_to_solve(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [lived(system="every_judgment", outcome="wrong")])
    arms = arms_of(run)
    assert "every_judgment asked the model" in headline_of(run, arms, ())
    summary = summary_of(run, arms)
    assert not any("solved" in finding.text for finding in summary.findings)
    assert summary.limits[0] == "What the answers lead to: they were only asked for, and nothing was done with them."
    assert not world_tables(run, arms), "an effect that nobody was to make is not lost"
