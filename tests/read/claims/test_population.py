"""Each claim declares what it is judged on: among what, what counts once, which arms, and in what these differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from records import config_in, edit_manifest, experiment, run_of, trial, write_run

import bench
from bench.read.analysis.claim import DirectionClaim
from bench.read.analysis.frames import Run
from bench.read.analysis.published import load_published
from bench.read.claims.evidence import results_by_model
from bench.read.claims.population import population_of, reason_against
from bench.read.claims.table import claims_tables
from bench.read.claims.trace import claim_named
from bench.read.claims.verdicts import judge_all
from bench.run.architectures.registry import ARCHITECTURES

PUBLISHED = load_published()
CLAIMED = claim_named(PUBLISHED, "retry.rca.runtime-below-static")
assert isinstance(CLAIMED, DirectionClaim)
BELOW: DirectionClaim = CLAIMED


def run_with(folder: Path, *architectures: str, **variants: object) -> Run:
    write_run(folder, experiment((*architectures, *variants)))
    edit_manifest(folder, config={**config_in(folder), "architecture": variants})
    return bench.load_run(folder)


def test_every_claim_declares_its_population_its_unit_and_its_arms(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", experiment())
    for claim in PUBLISHED.claim:
        population = population_of(run, claim)
        assert population.among and population.unit and population.arms, claim.id


def test_two_architectures_that_differ_in_three_things_are_said_to(tmp_path: Path) -> None:
    population = population_of(run_with(tmp_path / "run", "static", "runtime_structured"), BELOW)
    assert population.differ == ("when an output is verified", "what is asked again", "what the next prompt is told")
    assert population.between == ()


def test_an_arm_that_isolates_a_difference_is_named(tmp_path: Path) -> None:
    untold = {"base": "runtime_structured", "repair": "none"}
    population = population_of(run_with(tmp_path / "run", "static", "runtime_structured", untold=untold), BELOW)
    assert population.between == ("untold",)


def test_a_variant_that_is_told_the_same_lies_between_nothing(tmp_path: Path) -> None:
    again = {"base": "runtime_structured", "repair": "reason"}
    assert population_of(run_with(tmp_path / "run", "static", "runtime_structured", again=again), BELOW).between == ()


def test_a_pass_without_a_rejection_shows_how_a_task_is_asked_alone(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", "static", "runtime_structured", "monolithic")
    claim = claim_named(PUBLISHED, "tokens.rca.runtime-above-monolithic")
    assert population_of(run, claim).differ == ("how the task is asked",)


def test_of_several_instances_each_counts_once_and_of_one_each_repetition(tmp_path: Path) -> None:
    single, many = (
        run_of(tmp_path / str(len(names)), [trial("static", instance=name, scenario="k8s_oomkill", id=name) for name in names])
        for names in ("a", "abc")
    )
    assert (population_of(single, BELOW).unit, population_of(many, BELOW).unit) == ("repetition", "instance")


def test_the_report_shows_what_each_judged_claim_was_judged_on(tmp_path: Path) -> None:
    names = ("monolithic", "static", "runtime_structured")
    records = [trial(name, "paper", n, scenario="k8s_oomkill", timing="live") for name in names for n in (1, 2, 3)]
    run = run_of(tmp_path / "run", records)
    judgements = judge_all(run, PUBLISHED)
    verdicts, populations = claims_tables(run, judgements)
    assert [row[0] for row in verdicts.rows] == [row[0] for row in populations.rows] != []


def test_each_architecture_on_the_workbenchs_line_says_in_its_entry_what_sets_it_apart() -> None:
    ours = [part for part in ARCHITECTURES if part.acts_in == "task" and not part.makes_own_calls and not part.lineage]
    structures = [part.structure for part in ours]
    assert None not in structures and len(set(structures)) == len(ours)


def test_an_architecture_whose_entry_does_not_say_it_is_compared_in_no_aspect(tmp_path: Path) -> None:
    assert population_of(run_with(tmp_path / "run", "reflexion", "static"), BELOW).between == ()


def test_arms_that_differ_beside_what_the_claim_names_are_not_comparable(tmp_path: Path) -> None:
    """A variant that takes the name of the paper's arm and has more attempts is two things."""
    names = ("monolithic", "static", "runtime_structured")
    records = [trial(name, "paper", n, scenario="k8s_oomkill", timing="live") for name in names for n in range(1, 9)]
    write_run(tmp_path / "run", records)
    plain = bench.load_run(tmp_path / "run")
    assert reason_against(results_by_model(plain)[0], BELOW) == ""
    variant = {"static": {"base": "static", "max_attempts": 9}}
    edit_manifest(
        tmp_path / "run", config={**config_in(tmp_path / "run"), "architecture": variant}, models={"m": {"kind": "openai"}}
    )
    [judgement] = [each for each in judge_all(bench.load_run(tmp_path / "run"), PUBLISHED) if each.claim.id == BELOW.id]
    assert judgement.verdict == "not comparable"
    assert judgement.reason == "the arms differ in architecture and max_attempts, and the sentence names architecture alone"


def verdict_on(run: Run) -> tuple[str, str]:
    [judgement] = [each for each in judge_all(run, PUBLISHED) if each.claim.id == BELOW.id]
    return judgement.verdict, judgement.reason


def told_by(folder: Path, rejections: int, tokens: tuple[int, int] = (400, 400)) -> Run:
    """A run whose two arms are one architecture, and differ in what the next prompt is told after a rejection."""
    arms = {BELOW.lower: {"base": "static", "repair": "none"}, BELOW.higher: {"base": "static", "repair": "reason"}}
    records = [trial(name, "paper", n, scenario="k8s_oomkill", timing="live") for name in arms for n in range(1, 9)]
    write_run(folder, records)
    edit_manifest(folder, config={**config_in(folder), "architecture": arms}, models={"m": {"kind": "openai"}})
    run = bench.load_run(folder)
    rows = zip(run.trials["architecture"], run.trials["repetition"], strict=True)
    spent = [float(tokens[name == BELOW.higher] + n) for name, n in rows]
    return replace(run, trials=run.trials.assign(first_round_counted_tokens=spent, rejections=rejections))


def test_no_claim_is_judged_on_pairs_in_which_nothing_could_differ(tmp_path: Path) -> None:
    """What a prompt is told after a rejection shows nothing where nothing was rejected."""
    assert verdict_on(told_by(tmp_path / "never", 0)) == ("not comparable", "none of 8 pairs could have differed")
    assert verdict_on(told_by(tmp_path / "rejected", 1))[0] == "cannot be decided"
    assert "could have differed" not in verdict_on(told_by(tmp_path / "differ", 0, (400, 900)))[1]


def test_no_claim_is_judged_on_copies(tmp_path: Path) -> None:
    """A simulated model that never errs answers each repetition of a task alike."""
    by_model = {}
    for name, errs in (("right", 0.0), ("erring", 0.1)):
        records = [trial(arm, "paper", n, scenario="k8s_oomkill") for arm in (BELOW.lower, BELOW.higher) for n in range(1, 9)]
        write_run(tmp_path / name, records)
        edit_manifest(tmp_path / name, models={"m": {"kind": "simulated", "failure_rate": errs}})
        run = bench.load_run(tmp_path / name)
        spent = [400.0 + 500 * (arm == BELOW.higher) for arm in run.trials["architecture"]]
        run = replace(run, trials=run.trials.assign(first_round_counted_tokens=spent))
        by_model[name] = reason_against(results_by_model(run)[0], BELOW)
    assert by_model == {"right": "the 8 pairs that could differ are copies of 1", "erring": ""}
