"""The instances of a pack are tasks of their own: under their own seeds, draws and responses, in one experiment."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from trials import ROOTS, events, run_all

from bench.common.errors import PackError
from bench.record.events import Called, Faulted
from bench.record.reading import read_manifest, read_responses
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.preview import preview

SIMULATED = {"kind": "simulated"}
STORM = {"storm": {"faults": [{"point": "output", "effect": "missing_field", "probability": 0.5}]}}


def orchard(*names: str, entry: dict[str, Any] | None = None, **settings: Any) -> Config:
    given = {"scenarios": list(names or ("orchard",)), "plans": ["none"], "repetitions": 2, **settings}
    return config(entry or SIMULATED, **given)


def matrix_of(*names: str, **settings: Any) -> Matrix:
    return build_matrix(orchard(*names, **settings), ROOTS, "code")


def instances(matrix: Matrix) -> list[str]:
    return [scenario.instance for scenario in matrix.scenarios.values()]


def test_all_instances_of_a_pack_are_run_each_in_every_arm_and_repetition() -> None:
    matrix = matrix_of()
    places = {(spec.instance, spec.architecture, spec.repetition) for spec in matrix.specs}
    assert len(instances(matrix)) == 3 and len(places) == len(matrix.specs) == 3 * 2 * 2
    assert len({spec.id for spec in matrix.specs}) == len(matrix.specs)


def test_a_config_may_ask_for_a_sample_that_is_part_of_every_larger_one() -> None:
    every = instances(matrix_of("incidents"))
    samples = [instances(matrix_of("incidents", instances=count)) for count in (1, 5, 10, 20, 99)]
    assert [len(sample) for sample in samples] == [1, 5, 10, 20, 40] and samples[-1] == every
    assert all(set(sample) < set(other) for sample, other in itertools.pairwise(samples))
    assert samples[2] != every[:10] and samples[2] == [instance for instance in every if instance in samples[2]]


def test_a_sample_depends_on_the_seed_and_on_the_pack_alone() -> None:
    drawn = {seed: instances(matrix_of("incidents", instances=5, seed=seed)) for seed in (1, 2)}
    assert drawn[1] != drawn[2]
    others: dict[str, Any] = {"architectures": ["monolithic"], "repetitions": 1, "plans": ["storm"], "plan": STORM}
    assert instances(matrix_of("orchard", "incidents", instances=5, seed=1, **others))[-5:] == drawn[1]
    assert instances(matrix_of("incidents:easy", instances=5, seed=1)) == drawn[1], "levels are compared on the same names"


def test_a_config_may_name_one() -> None:
    every = instances(matrix_of())
    assert instances(matrix_of(f"orchard/{every[1]}")) == [every[1]]
    assert instances(matrix_of(f"orchard/{every[2]}", f"orchard/{every[0]}")) == [every[2], every[0]]


def test_an_instance_that_does_not_exist_is_refused_with_the_nearest() -> None:
    name = instances(matrix_of())[0]
    with pytest.raises(PackError, match=f"scenario 'orchard' has no instance '{name}x'; did you mean '{name}'"):
        matrix_of(f"orchard/{name}x")


def test_the_ids_of_an_instance_depend_on_no_other() -> None:
    every = matrix_of()
    name = instances(every)[1]
    assert {spec.id for spec in matrix_of(f"orchard/{name}").specs} == {
        spec.id for spec in every.specs if spec.instance == name
    }


def test_the_sole_instances_ids_do_not_depend_on_how_many_are_asked_for() -> None:
    ids = [[spec.id for spec in matrix_of("tiny", instances=count).specs] for count in (None, 1, 7)]
    assert ids[0] == ids[1] == ids[2]


def test_seeds_and_draws_differ_by_instance_and_by_nothing_that_is_no_part_of_their_key() -> None:
    results = run_all(matrix_of(plans=["storm"], plan=STORM, repetitions=8))
    seeds: dict[str, set[int]] = {}
    faults: dict[str, set[tuple[int, str, int]]] = {}
    for result in results:
        record = result.record
        if record.architecture == "static":
            seeds.setdefault(record.instance, set()).update(call.seed for call in events(result, Called) if call.attempt == 1)
            planned = [event for event in events(result, Faulted) if event.stage == "planned" and event.attempt == 1]
            faults.setdefault(record.instance, set()).update((record.repetition, fault.subtask, 1) for fault in planned)
    assert len(seeds) == 3 and sum(map(len, seeds.values())) == len(set().union(*seeds.values()))
    assert len({frozenset(struck) for struck in faults.values()}) == 3


def test_the_preview_adds_the_instances_up() -> None:
    every, single = list(preview(matrix_of())), [list(preview(matrix_of(f"orchard/{name}"))) for name in instances(matrix_of())]
    for number, row in enumerate(every):
        rows = [rows_of_instance[number] for rows_of_instance in single]
        assert (row.scenario, row.trials) == ("orchard", 6)
        assert row.trials == sum(row.trials for row in rows) and row.calls == sum(row.calls or 0 for row in rows)
        assert row.tokens == sum(row.tokens or 0 for row in rows)


def test_two_instances_never_share_a_response(tmp_path: Path) -> None:
    run(orchard(), tmp_path / "run")
    by_request: dict[object, set[str]] = {}
    for response in read_responses(tmp_path / "run"):
        by_request.setdefault((response.messages, response.seed), set()).add(response.instance)
    assert len(by_request) > 3 and {len(names) for names in by_request.values()} == {1}


def test_a_replay_of_several_instances_is_the_run(tmp_path: Path) -> None:
    first = run(orchard(), tmp_path / "run")
    again = run(orchard(entry={"kind": "recorded", "run": tmp_path / "run"}), tmp_path / "again")
    assert [(trial.instance, trial.arm, trial.tokens, trial.outcome) for trial in again] == [
        (trial.instance, trial.arm, trial.tokens, trial.outcome) for trial in first
    ]


def test_the_manifest_names_the_instances_and_their_joint_digest(tmp_path: Path) -> None:
    asked = []
    for count in (1, 2, 3):
        run(orchard(instances=count), tmp_path / str(count))
        pack = read_manifest(tmp_path / str(count)).scenarios["orchard"]
        assert list(pack.instances) == instances(matrix_of(instances=count)) and pack.baseline and pack.baseline.of == count
        asked.append(pack.asked)
    assert len(set(asked)) == 3
