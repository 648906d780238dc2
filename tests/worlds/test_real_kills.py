"""A real process on a world in a file, with its store in a file, ended by SIGKILL: its world ends as that of the same crash in
process does."""

from __future__ import annotations

from pathlib import Path

import pytest
from exactly_once.crashes import CONFIG, ROOT, matrix_of
from exactly_once.kills import in_process, killed
from exactly_once.lives import FileStore, KeptTries, lived

from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.untrusted import permission
from bench.worlds.run.entries import MODEL_LED
from bench.worlds.run.runtime.process import Process

PLANS = ("before_draft", "unacknowledged_note", "unrecorded_letter", "recorded_draft")


@pytest.fixture(scope="module", name="matrix")
def _matrix() -> Matrix:
    return matrix_of(1, 1)


@pytest.mark.parametrize("architecture", ["state_machine", "state_machine_remedied"])
@pytest.mark.parametrize("plan", PLANS)
def test_a_real_kill_at_each_point_leaves_the_world_that_the_crash_in_process_leaves(
    matrix: Matrix, architecture: str, plan: str, tmp_path: Path
) -> None:
    [spec] = [each for each in matrix.specs if (each.architecture, each.plan.name) == (architecture, plan)]
    end, kills = lived(matrix, spec, tmp_path)
    assert (kills, end.lives) == (1, 2)
    assert end == in_process(matrix, spec, permission(matrix).graders[spec.model])
    assert end.correct or architecture == "state_machine"


@pytest.mark.parametrize("architecture", MODEL_LED)
def test_a_real_kill_of_a_monitor_and_of_a_model_that_leads_leaves_the_world_that_the_crash_in_process_leaves(
    architecture: str, tmp_path: Path
) -> None:
    few = {"instances": 1, "repetitions": 1, "plans": ["unacknowledged_note"], "architectures": [architecture]}
    matrix = build_matrix(load_config(CONFIG, few), [ROOT / "scenarios"], "code")
    [spec] = matrix.specs
    end, kills = lived(matrix, spec, tmp_path)
    assert (kills, end.lives) == (1, 2)
    assert end == in_process(matrix, spec, permission(matrix).graders[spec.model])


@pytest.mark.parametrize("plan", ["unacknowledged_merge", "recorded_release"])
def test_a_real_kill_of_who_merges_and_deploys_leaves_the_world_that_the_crash_in_process_leaves(
    plan: str, tmp_path: Path
) -> None:
    matrix = matrix_of(1, 1, ROOT / "studies" / "exactly_once" / "exactly_once_upgrade.toml")
    [spec] = [each for each in matrix.specs if (each.architecture, each.plan.name) == ("state_machine", plan)]
    end, kills = lived(matrix, spec, tmp_path)
    assert (kills, end.lives) == (1, 2)
    assert end == in_process(matrix, spec, permission(matrix).graders[spec.model])


@pytest.mark.endurance
@pytest.mark.parametrize("architecture", load_config(CONFIG, {}).architectures)
def test_twenty_five_real_kills_of_each_pattern_agree_with_its_crashes_in_process(architecture: str) -> None:
    measured = killed(matrix_of(1, 4), architecture, 25)
    assert (measured.kills, measured.agree) == (25, measured.trials)


def test_a_store_in_a_file_and_the_count_of_tries_are_there_for_the_next_process(tmp_path: Path) -> None:
    def store() -> FileStore:
        return FileStore(Process(lambda _: None), lambda *_: None, tmp_path / "store.json")

    first, tries = store(), KeptTries(tmp_path / "tries.jsonl")
    first.put("row", {"version": 1})
    first.append("log", "one")
    first.append("log", "two")
    for _ in range(2):
        tries["pay", "payment 1"] += 1
    again = store()
    assert (again.get("row"), again.log("log"), again.names()) == ({"version": 1}, ["one", "two"], ["row"])
    assert KeptTries(tmp_path / "tries.jsonl") == tries == {("pay", "payment 1"): 2}
