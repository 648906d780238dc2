"""The renewals told otherwise: other prompts, and the same truth, the same right course, the same faults."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from trials import events, run_all

from bench.record.equivalents import LEVELS
from bench.record.events import Called, Faulted
from bench.record.store import RunWriter
from bench.record.verify import verify
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.runner import run_matrix
from bench.run.packs import instances_of, load_pack
from bench.run.trial.loop import run
from bench.scenario import Scenario
from bench.worlds.run.environment import World, final_world
from scenarios.contract_renewal.limits import NAMED

PACK = Path(__file__).parents[2] / "scenarios" / "contract_renewal"
TEN = [f"case_{number:02}" for number in range(1, 11)]
"""One of each kind."""
NAMES = ("contract_renewal", *(f"contract_renewal:{level}" for level in LEVELS))


@cache
def scenario_of(name: str, instance: str) -> Scenario:
    return load_pack(name, [PACK.parent], instance)


def shown(scenario: Scenario, table: str) -> list[dict[str, object]]:
    assert scenario.environment
    return [dict(row) for row in scenario.environment.rows[table]]


def test_each_level_has_the_instances_of_the_pack() -> None:
    assert len({instances_of(name, [PACK.parent]) for name in NAMES}) == 1


@pytest.mark.parametrize("level", NAMES[1:])
def test_the_truth_the_reference_and_what_grades_are_the_same_and_the_reference_solves_it(level: str) -> None:
    for instance in TEN:
        plain, equivalent = scenario_of(NAMES[0], instance), scenario_of(level, instance)
        assert (equivalent.truth, equivalent.reference, equivalent.wrong) == (plain.truth, plain.reference, plain.wrong)
        assert equivalent.asked != plain.asked
        assert equivalent.environment
        with closing(World(equivalent.environment)) as world:
            equivalent.environment.reference(world)
            assert equivalent.grade(final_world(world.snapshot().content), equivalent.truth).correct, instance


def test_a_customer_has_another_name_unless_the_policy_names_it_and_keeps_its_number_product_and_terms() -> None:
    for instance in TEN:
        plain, *others = [shown(scenario_of(name, instance), "customer")[0] for name in NAMES]
        for other in others:
            assert (other["name"] == plain["name"]) is (plain["name"] in NAMED)
            assert {**other, "name": plain["name"]} == plain
        assert others[0]["name"] == others[1]["name"]


def test_letters_and_remarks_change_at_the_second_level_alone_and_mean_the_same() -> None:
    for instance in TEN:
        plain, first, second = [shown(scenario_of(name, instance), "behind")[0] for name in NAMES]
        assert plain == first and plain["meaning"] == second["meaning"]
        assert (plain["text"] == second["text"]) is (plain["meaning"] == "silent")
        signals, same, other = [shown(scenario_of(name, instance), "signal") for name in NAMES]
        assert signals == same and all(signal != two for signal, two in zip(signals, other, strict=True))


def of_levels(**more: object) -> Matrix:
    values = {
        "name": "test",
        "scenarios": [f"{name}/case_04" for name in NAMES],
        "architectures": ["state_machine"],
        "models": ["m"],
        "repetitions": 1,
        "seed": 7,
        "model": {"m": {"kind": "simulated"}},
        **more,
    }
    return build_matrix(Config.model_validate(values), [PACK.parent], "code")


def test_a_run_of_every_level_keeps_the_responses_of_each_and_is_sound(tmp_path: Path) -> None:
    matrix = of_levels(plans=["none"])
    writer = RunWriter(tmp_path / "run", manifest_of(matrix, "run"))
    run(run_matrix(matrix, writer, lambda _: None))
    writer.close()
    assert verify(tmp_path / "run").defects == ()


def test_every_level_shows_other_prompts_and_meets_the_same_faults_with_the_same_outcome() -> None:
    """A right proposer under faults of every kind: whatever differs between levels would be the faults' or the world's."""
    struck = [
        {"point": "tool", "effect": "error", "tool": "*", "probability": 0.2},
        {"point": "tool", "effect": "lost_ack", "tool": "*", "probability": 0.2},
        {"point": "call", "effect": "rate_limit", "probability": 0.3},
    ]
    matrix = of_levels(
        architectures=["state_machine", "kept"],
        plans=["struck"],
        plan={"struck": {"faults": struck}},
        architecture={"kept": {"base": "state_machine", "remedies": True}},
    )
    results = run_all(matrix)
    faults, prompts = {}, {}
    for result in results:
        place = result.record.architecture, result.record.scenario
        delivered = [event for event in events(result, Faulted) if event.stage == "delivered"]
        met = Counter((event.point, event.effect, event.subtask, event.attempt) for event in delivered)
        faults[place] = (result.record.outcome, met)
        prompts[place] = [tuple(part.content for part in event.messages) for event in events(result, Called)]
    for name in ("state_machine", "kept"):
        assert faults[name, NAMES[0]] == faults[name, NAMES[1]] == faults[name, NAMES[2]]
        assert faults[name, NAMES[0]][1].total() > 3
        per_level = [set(prompts[name, level]) for level in NAMES]
        assert not per_level[0] & per_level[1] and not per_level[0] & per_level[2] and not per_level[1] & per_level[2]
