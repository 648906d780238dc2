"""A worker makes the experiment again from what travelled to it: the same records, or a line that says what differs."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run_matrix_in
from trials import ROOTS

from bench.engine.worker import Experiment, run_trials
from bench.errors import ResultsError
from bench.experiment.code import our_codebase
from bench.experiment.matrix import Matrix, build_matrix
from bench.experiment.reading import read_responses, read_texts

SIMULATED = {"kind": "simulated", "failure_rate": 0.3}


def matrix_of(**settings: Any) -> Matrix:
    return build_matrix(config(SIMULATED, **{"repetitions": 1, **settings}), ROOTS, our_codebase().digest)


def travelling(matrix: Matrix, **changed: Any) -> bytes:
    return pickle.dumps(replace(Experiment.of(matrix, ROOTS, unguarded=False), **changed))


def test_a_worker_comes_to_the_records_responses_and_texts_that_one_process_writes(tmp_path: Path) -> None:
    matrix = matrix_of()
    written = {record.id: replace(record, framework_seconds=0.0) for record in run_matrix_in(matrix, tmp_path / "run")}
    finished = run_trials(travelling(matrix), matrix.specs)
    assert {trial.record.id: replace(trial.record, framework_seconds=0.0) for trial in finished} == written
    assert [response for trial in finished for response in trial.responses] == list(read_responses(tmp_path / "run"))
    texts = {digest: text for trial in finished for digest, text in trial.texts.items()}
    assert texts == read_texts(tmp_path / "run")


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
