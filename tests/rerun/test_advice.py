"""What is advised follows from the work and from what was measured, and says where nothing was."""

from __future__ import annotations

import gzip
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import bench
from study_runs import run_of_matrix
from trials import ROOTS

from bench.common.errors import ResultsError
from bench.read.claims.break_even import rate_in_words
from bench.record.config import StoredConfig
from bench.rerun.advice import MECHANISMS_OF_PATTERN, Advice, advise, held_out
from bench.rerun.advice_artifact import advice_lines, artifact_of, held_out_line
from bench.rerun.evidence import DAMAGE, TABLE, Evidence, read_evidence
from bench.rerun.workload import WorkloadEntry
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix

INSTANCES = [f"case_{number:02}" for number in range(1, 7)]
HARM, CALM = 1, 0


def entry(failures: Mapping[str, float] | None = None, **work: Any) -> WorkloadEntry:
    values = {"lasts_minutes": 20, **work}
    evidence = {"run": "made", "scenario": "world"}
    return WorkloadEntry.model_validate({"name": "w", "work": values, "failures": dict(failures or {}), "evidence": evidence})


def measured(harm: Mapping[str, int], excess: Mapping[str, int], plans: tuple[str, ...] = ("crash",)) -> Evidence:
    """A run in which each arm damages so many effects and pays so many tokens for a failure; 0 where it is not named."""
    arms = [arm for pattern in MECHANISMS_OF_PATTERN for arm in (pattern, f"{pattern}_kept")]
    variants = {f"{pattern}_kept": {"base": pattern, "remedies": True} for pattern in MECHANISMS_OF_PATTERN}
    config = StoredConfig.model_validate(
        {"name": "made", "scenarios": ["world"], "architectures": arms, "models": ["m"], "plans": ["none", *plans]}
        | {"repetitions": 1, "seed": 1, "architecture": variants}
    )
    rows = [
        {"scenario": "world", "architecture": arm, "plan": plan, "instance": instance, "repetition": 1, "outcome": "solved"}
        | {"tokens": 1000.0 + (excess.get(arm, 0) if plan != "none" else 0), "faults_delivered": int(plan != "none")}
        | dict.fromkeys(DAMAGE, 0)
        | {DAMAGE[0]: harm.get(arm, 0) if plan != "none" else 0}
        for arm in arms
        for plan in ("none", *plans)
        for instance in INSTANCES
    ]
    return Evidence("made", "world", config, pd.DataFrame(rows), simulated=True)


BARE_HARMS = dict.fromkeys(MECHANISMS_OF_PATTERN, HARM)


@pytest.mark.parametrize(
    ("work", "pattern"),
    [
        ({}, "state_machine"),
        ({"log_is_truth": True}, "event_driven"),
        ({"parts": 3}, "composition"),
        ({"parts": 3, "outside_effects": False}, "plan_execute_evaluate"),
        ({"approvals": True}, "composition"),
        ({"log_is_truth": True, "approvals": True}, "event_driven"),
    ],
)
def test_the_state_decides_first_and_then_as_much_of_the_rest_as_a_pattern_supplies(work: Any, pattern: str) -> None:
    assert advise(entry({"crash": 1}, **work), measured(BARE_HARMS, {})).pattern == pattern


def test_work_that_demands_nothing_gets_the_simplest_pattern() -> None:
    advice = advise(entry({}), measured({}, {}))
    assert advice.pattern == "bare_agent" and [demand.mechanism for demand in advice.demands] == ["", "", ""]


def test_an_arm_that_was_damaged_is_not_advised_however_cheap_it_is() -> None:
    dear = {f"{pattern}_kept": 500 for pattern in MECHANISMS_OF_PATTERN}
    advice = advise(entry({"crash": 1}), measured(BARE_HARMS, dear))
    assert (advice.arm, advice.damaged.k, advice.price) == ("state_machine_kept", 0, 1500)


def test_of_arms_without_damage_the_cheapest_is_advised() -> None:
    advice = advise(entry({"crash": 2}), measured({}, {"state_machine": 300, "state_machine_kept": 400, "composition": 100}))
    assert advice.arm == "plan_execute_evaluate_kept"
    cheaper = {f"{pattern}{form}": 300 for pattern in MECHANISMS_OF_PATTERN for form in ("", "_kept")}
    assert advise(entry({"crash": 2}), measured({}, cheaper | {"composition": 100})).arm == "composition"


def test_what_costs_the_same_is_named_and_said_not_to_be_told_apart() -> None:
    workload, evidence = entry({"crash": 1}), measured(BARE_HARMS, {})
    advice = advise(workload, evidence)
    assert set(advice.equally_cheap) == {"plan_execute_evaluate_kept", "composition_kept"}
    assert "No price tells it from" in artifact_of(workload, advice, evidence, None)


def test_where_every_arm_was_damaged_the_least_damaged_is_advised_and_not_called_harmless() -> None:
    every = {f"{pattern}{form}": HARM for pattern in MECHANISMS_OF_PATTERN for form in ("", "_kept")}
    workload, evidence = entry({"crash": 1}), measured(every, {})
    advice = advise(workload, evidence)
    assert not advice.harmless and advice.damaged.k == 6
    assert "did the least damage" in next(advice_lines(workload, advice, evidence, None))


def test_a_failure_that_the_run_has_not_is_no_measurement() -> None:
    workload, evidence = entry({"crash": 1, "flood": 2}), measured(BARE_HARMS, {})
    advice = advise(workload, evidence)
    assert (advice.measured, advice.unmeasured) == (("crash",), ("flood",))
    assert "no measurement of flood" in "\n".join(advice_lines(workload, advice, evidence, None))
    assert "- flood: no measurement." in artifact_of(workload, advice, evidence, None)


def test_each_recommendation_has_its_damage_and_its_break_even() -> None:
    evidence = measured(BARE_HARMS | {"bare_agent": 3}, {"bare_agent": 400, "state_machine": 100})
    advice = advise(entry({"crash": 1}, approvals=True), evidence)
    assert [(each.ours, each.theirs) for each in advice.comparisons] == [
        ("composition_kept", "composition"),
        ("state_machine", "bare_agent"),
        ("human_in_the_loop", "bare_agent"),
    ]
    spine = advice.comparisons[1]
    assert spine.effects == (6, 18) and spine.break_even["crash"] is not None
    assert rate_in_words(spine.break_even["crash"]) == "from the first on"
    assert rate_in_words(evidence.break_even("bare_agent", "state_machine", "crash")) == "never"


def measured_by_instance(harm: Mapping[str, Sequence[int]]) -> Evidence:
    """A run in which each arm damages so many effects in each instance in turn."""
    evidence = measured({}, {})
    trials = evidence.trials.copy()
    for arm, values in harm.items():
        trials.loc[(trials["architecture"] == arm) & (trials["plan"] == "crash"), DAMAGE[0]] = list(values)
    return replace(evidence, trials=pd.concat([trials, trials.assign(instance=trials["instance"] + "_again")]))


def test_where_tools_take_no_keys_only_bare_arms_are_advised() -> None:
    evidence = measured({}, {})
    assert advise(entry({"crash": 1}, keys=False), evidence).harm.keys() == set(MECHANISMS_OF_PATTERN)
    assert advise(entry({"crash": 1}), evidence).harm.keys() == {
        f"{each}{form}" for each in MECHANISMS_OF_PATTERN for form in ("", "_kept")
    }


def test_a_measurement_that_contradicts_the_steps_is_followed_and_said() -> None:
    workload = entry({"crash": 2}, keys=False, approvals=True)
    evidence = measured_by_instance(
        {pattern: (3, 4, 5, 3, 4, 5) for pattern in MECHANISMS_OF_PATTERN if pattern != "supervisor_gate"}
    )
    advice = advise(workload, evidence)
    assert (advice.arm_by_steps, advice.arm, advice.harm["composition"], advice.indistinguishable) == (
        "composition",
        "supervisor_gate",
        8,
        (),
    )
    shown = "\n".join(advice_lines(workload, advice, evidence, None))
    assert "the steps lead to composition, which did more damage: in a run composition 8.00 and supervisor_gate 0.00" in shown


def test_where_damage_does_not_tell_the_arms_apart_it_does_not_know_and_keeps_to_the_steps() -> None:
    workload = entry({"crash": 1}, keys=False, approvals=True)
    evidence = measured_by_instance({"composition": (1, 0, 0, 0, 0, 0), "bare_agent": (0, 1, 0, 0, 0, 0)})
    advice = advise(workload, evidence)
    assert (advice.arm, advice.arm_by_steps) == ("composition", "composition")
    assert (
        set(advice.indistinguishable)
        == set(advise(workload, measured({}, {})).indistinguishable)
        == set(MECHANISMS_OF_PATTERN) - {"composition"}
    )
    assert "it does not know: damage does not tell composition from 8 of 8 others" in "\n".join(
        advice_lines(workload, advice, evidence, None)
    )


def test_a_choice_stands_beside_the_best_the_worst_and_a_coin() -> None:
    workload = entry({"crash": 1}, keys=False, approvals=True)
    harm = {pattern: place for place, pattern in enumerate(MECHANISMS_OF_PATTERN)}
    outcome = held_out(advise(workload, measured({}, {})), measured(harm, {}, ("storm",)), "storm")
    assert (outcome.arm, outcome.best, outcome.worst, outcome.mean_harm) == ("composition", "bare_agent", "composition", 4)
    assert "advised 8.00, best (bare_agent) 0.00, worst (composition) 8.00, a coin 4.00" in held_out_line(outcome)


def judged(harm: Mapping[str, int], excess: Mapping[str, int]) -> tuple[Advice, str, bool]:
    advice = advise(entry({"crash": 1}), measured(BARE_HARMS, {}))
    outcome = held_out(advice, measured(harm, excess, ("storm",)), "storm")
    return advice, held_out_line(outcome), outcome.holds


@pytest.mark.parametrize(
    ("harm", "excess", "holds"),
    [
        ({}, {"state_machine_kept": 100}, True),
        ({}, {"state_machine_kept": 101}, False),
        ({"state_machine_kept": HARM}, {}, False),
    ],
)
def test_advice_holds_elsewhere_where_it_damages_nothing_within_a_tenth_of_the_best_price(
    harm: Mapping[str, int], excess: Mapping[str, int], holds: bool
) -> None:
    advice, line, result = judged(harm, excess)
    assert (advice.arm, result) == ("state_machine_kept", holds)
    assert line.endswith("holds" if holds else "does not hold")


def without(evidence: Evidence, arms: Collection[str]) -> Evidence:
    """Return the evidence of a run that has all arms but these."""
    names = [arm for arm in evidence.config.architectures if arm not in arms]
    variants = {name: entry for name, entry in evidence.config.architecture.items() if name in names}
    config = evidence.config.model_copy(update={"architectures": names, "architecture": variants})
    return replace(evidence, config=config, trials=evidence.trials[evidence.trials["architecture"].isin(names)])


def test_a_run_that_lacks_the_advised_arm_cannot_judge_the_advice() -> None:
    advice = advise(entry({"crash": 1}), measured(BARE_HARMS, {}))
    lacking = without(measured({}, {}, ("storm",)), [advice.arm])
    with pytest.raises(
        ResultsError, match=f"made: has no arm '{advice.arm}', which is advised; run the held-out config with it"
    ):
        held_out(advice, lacking, "storm")


def test_a_run_without_a_known_pattern_gives_no_advice() -> None:
    evidence = measured({}, {})
    renamed = evidence.config.model_copy(update={"architectures": ["work_queue"], "architecture": {}})
    trials = evidence.trials[evidence.trials["architecture"] == "state_machine"].assign(architecture="work_queue")
    with pytest.raises(ResultsError, match="made: advice needs one of the patterns bare_agent, "):
        advise(entry({"crash": 1}, keys=False), replace(evidence, config=renamed, trials=trials))


def test_the_first_screen_has_at_most_twelve_lines() -> None:
    workload, evidence = entry({"crash": 1, "flood": 1}, parts=2, approvals=True), measured(BARE_HARMS, {})
    advice = advise(workload, evidence)
    shown = list(advice_lines(workload, advice, evidence, held_out(advice, measured({}, {}, ("storm",)), "storm")))
    assert len(shown) + 1 <= 12


# Runs

ARMS = {"state_machine_kept": {"base": "state_machine", "remedies": True}}
CRASH = [{"point": "process", "effect": "unacknowledged", "tool": "*", "probability": 0.2}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two conversations."""
    config = Config.model_validate(
        {
            "name": "small",
            "scenarios": ["support_desk"],
            "architectures": ["bare_agent", "state_machine", *ARMS],
            "models": ["m"],
        }
        | {"plans": ["none", "crash"], "plan": {"crash": {"faults": CRASH}}, "architecture": ARMS, "instances": 2}
        | {"repetitions": 1, "seed": 3, "model": {"m": {"kind": "simulated"}}}
    )
    run = run_of_matrix(tmp_path_factory.mktemp("advise"), build_matrix(config, ROOTS, "code"))
    assert run.folder
    return run.folder


def test_a_run_and_the_table_of_its_trials_among_the_reports_are_the_same_evidence(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = read_evidence(str(folder), "support_desk")
    reported = tmp_path / "reports" / "earlier"
    for place in (reported, tmp_path / "results" / "another"):
        place.mkdir(parents=True)
    evidence.trials.to_csv(reported / TABLE, index=False)
    (reported / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    monkeypatch.chdir(tmp_path)
    kept = read_evidence("earlier", "support_desk")
    assert kept.simulated and evidence.simulated and evidence.patterns == {"state_machine": "state_machine_kept"}
    workload = entry({"crash": 1})
    assert advise(workload, kept).arm == advise(workload, evidence).arm == "state_machine_kept"
    assert kept.price("state_machine", {"crash": 1}) == evidence.price("state_machine", {"crash": 1})


def test_what_is_no_evidence_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="results/none-such: holds no run; known: "):
        read_evidence("none-such", "support_desk")
    with pytest.raises(ResultsError, match="has no scenario 'support_disk'; did you mean 'support_desk'"):
        read_evidence(str(folder), "support_disk")
    (tmp_path / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    whole = gzip.compress(b"tokens\nmany\n")
    for table, reason in (
        (gzip.compress(b"a,b\n1,2\n"), "has no column scenario"),
        *((damaged, "is not a table of trials") for damaged in (whole, whole[:-12], whole[:12], b"tokens\n1\n")),
    ):
        (tmp_path / TABLE).write_bytes(table)
        with pytest.raises(ResultsError, match=reason) as refused:
            read_evidence(str(tmp_path), "support_desk")
        assert "\n" not in str(refused.value)


WORKLOAD = """
name = "small"
[work]
lasts_minutes = 30
[failures]
crash = 1.0
[evidence]
run = "{run}"
scenario = "support_desk"
"""


def test_the_command_prints_the_advice_and_writes_the_artifact(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(WORKLOAD.format(run=folder), encoding="utf-8")
    code, out, _ = bench(tmp_path, "more", "advise", "small.toml")
    assert code == 0 and "build state_machine_kept" in out and len(out.splitlines()) <= 12
    assert (tmp_path / "small-advice.md").read_text(encoding="utf-8").startswith("# Advice: small")


def test_a_run_that_is_not_there_ends_the_command_in_one_line_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(WORKLOAD.format(run="gone"), encoding="utf-8")
    code, out, err = bench(tmp_path, "more", "advise", "small.toml")
    assert code == 2 and not out and len(err.splitlines()) == 1 and "gone: there is no such run" in err
    assert not (tmp_path / "small-advice.md").exists()
