"""Commands run several at a time where no model is live, and a run says ahead how often they are started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from driven import AGENTS, matrix_of, receipts
from little_worlds import ended, harm
from trials import ROOTS

from bench.record.events import Called, of_kind
from bench.record.store import RunWriter
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.preview import expected_starts
from bench.run.experiment.runner import run_matrix
from bench.run.experiment.session import Session
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.trial.loop import run

CRASH = [{"point": "process", "effect": "unacknowledged", "tool": "notify", "attempts": [1]}]
MATRIX = matrix_of(["python", "clerk.py", "careful"], CRASH, repetitions=3)


def ran(folder: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[TrialResult], int]:
    """The trials, and how many of them ran at a time at most."""
    results = list[TrialResult]()
    now = most = 0

    async def conduct(*given: Any) -> TrialResult:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await run_trial(*given)
        finally:
            now -= 1

    writer = RunWriter(folder, manifest_of(MATRIX, folder.name))
    with monkeypatch.context() as patched:
        patched.setattr("bench.run.experiment.runner.run_trial", conduct)
        run(run_matrix(MATRIX, writer, results.append, Session(workers=workers)))
    writer.close()
    return sorted(results, key=lambda result: result.record.repetition), most


def shown(result: TrialResult) -> tuple[object, ...]:
    calls = of_kind(result.record.events, Called)
    seconds = [call.seconds for call in calls]
    return result.record.id, result.record.outcome, harm(result), ended(result).lives, receipts(result), seconds


def test_trials_of_commands_run_two_at_a_time_and_come_out_as_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (alone, least), (together, most) = (ran(tmp_path / f"{workers}", workers, monkeypatch) for workers in (1, 2))
    assert (least, most) == (1, 2)
    assert list(map(shown, alone)) == list(map(shown, together))


def test_it_is_said_ahead_how_often_a_command_is_started() -> None:
    crash = {"faults": [{"point": "process", "effect": "unacknowledged", "attempts": [1]}]}
    plans = {"plans": ["none", "crash"], "plan": {"crash": crash}}
    values = {"name": "ahead", "scenarios": ["contract_renewal"], "instances": 2, "repetitions": 1, "seed": 7, **plans}
    parts = {"architectures": ["mine"], "architecture": {"mine": {"command": ["python", "clerk.py"], "folder": str(AGENTS)}}}
    models = {"models": ["m"], "model": {"m": {"kind": "simulated"}}}
    often = expected_starts(build_matrix(Config.model_validate({**values, **parts, **models}), ROOTS, "code"))
    assert often and often > 2
    assert expected_starts(MATRIX) is None, "its world has no procedure"
