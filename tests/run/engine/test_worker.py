"""A worker makes the experiment again from what travelled to it: the same records, or a line that says what differs."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from equal_runs import assert_equal
from experiment_runs import config, run_matrix_in
from trials import ROOTS

from bench.common.errors import ResultsError
from bench.record.store import RunWriter
from bench.run.engine.worker import Experiment, run_trials
from bench.run.experiment.budget import Budget, Spending
from bench.run.experiment.code import our_codebase
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.session import Session

SIMULATED = {"kind": "simulated", "failure_rate": 0.3}


def matrix_of(**settings: Any) -> Matrix:
    return build_matrix(config(SIMULATED, **{"repetitions": 1, **settings}), ROOTS, our_codebase().digest)


def travelling(matrix: Matrix, **changed: Any) -> bytes:
    return pickle.dumps(replace(Experiment.of(matrix, ROOTS, unguarded=False), **changed))


def test_what_workers_send_back_makes_the_run_that_one_process_writes(tmp_path: Path) -> None:
    matrix = matrix_of()
    run_matrix_in(matrix, tmp_path / "here")
    specs, writer = tuple(matrix.specs), RunWriter(tmp_path / "there", manifest_of(matrix, "there"))
    for batch in (specs[3:], specs[:3]):
        writer.append(pickle.loads(pickle.dumps(run_trials(travelling(matrix), batch))).lines)
    assert writer.trials == len(specs)
    writer.close()
    assert_equal(tmp_path / "here", tmp_path / "there")


def test_a_worker_tells_what_its_trials_spent_of_a_budget(tmp_path: Path) -> None:
    matrix = matrix_of()
    here = Spending(Budget(tokens=10**9), matrix.models)
    run_matrix_in(matrix, tmp_path, Session(here))
    finished = run_trials(travelling(matrix), matrix.specs, Budget(tokens=1))
    assert finished.so_far.trials == len(matrix.specs), "a budget ends the run where it was begun, and not on a worker"
    assert (finished.tokens, finished.cost) == (here.tokens, 0.0) != (0, 0.0)
    assert run_trials(travelling(matrix), matrix.specs).tokens == 0, "nobody counts where nothing is bounded"


DIFFERENT: Mapping[str, str] = {
    "the code of bench": "a worker has another version of the code of bench; install there what",
    "the pack 'tiny'": "a worker has another version of the pack 'tiny';",
    "the architecture 'static'": "a worker has another version of the architecture 'static';",
    "the package 'pydantic'": "a worker has another version of the package 'pydantic';",
    "the package 'other'": "a worker lacks the package 'other';",
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_worker_that_has_another_version_runs_nothing_and_names_it(name: str) -> None:
    matrix = matrix_of()
    digests = {**Experiment.of(matrix, ROOTS, unguarded=False).digests, name: "other"}
    with pytest.raises(ResultsError, match=DIFFERENT[name]):
        run_trials(travelling(matrix, digests=digests), matrix.specs[:1])


def test_a_worker_without_the_pack_says_so_in_the_words_of_the_pack(tmp_path: Path) -> None:
    lacking = travelling(matrix_of(), packs=(tmp_path,))
    with pytest.raises(ResultsError, match=r"^a worker cannot make the experiment: .*tiny.*; install there what is installed"):
        run_trials(lacking, ())
