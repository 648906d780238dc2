"""Trials of agents that are processes, in the world `refunds`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from little_worlds import REFUNDS
from trials import GRADERS, Fault

from bench.record.events import Faulted
from bench.record.process_events import ProcessEnded
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots

AGENTS = Path(__file__).parent / "outside"


def matrix_of(words: Sequence[str], faults: Sequence[Fault] = (), repetitions: int = 1, **entry: Any) -> Matrix:
    """An experiment with this command; the files that it names are those of AGENTS."""
    values = {
        "name": "test",
        "scenarios": ["refunds"],
        "architectures": ["mine"],
        "models": ["m"],
        "plans": ["plan"],
        "repetitions": repetitions,
        "seed": 7,
        "model": {"m": {"kind": "simulated"}},
        "plan": {"plan": {"faults": list(faults)}},
        "architecture": {"mine": {"command": list(words), "folder": str(AGENTS), **entry}},
    }
    return build_matrix(Config.model_validate(values), (), "code", scenarios={"refunds": REFUNDS})


def driven(words: Sequence[str], faults: Sequence[Fault] = (), **entry: Any) -> TrialResult:
    matrix = matrix_of(words, faults, **entry)
    return run(run_trial(matrix.specs[0], matrix, Slots(), GRADERS))


def interrupted(words: Sequence[str], when: Callable[[], bool], **entry: Any) -> None:
    """A trial that is cancelled as soon as this is so, as Ctrl-C does."""

    async def work() -> None:
        matrix = matrix_of(words, **entry)
        trial = asyncio.create_task(run_trial(matrix.specs[0], matrix, Slots(), GRADERS))
        while not when():  # noqa: ASYNC110  what it waits for is another process's
            await asyncio.sleep(0.01)
        trial.cancel()
        await asyncio.gather(trial, return_exceptions=True)
        assert trial.cancelled()

    run(work())


def ends(result: TrialResult) -> list[ProcessEnded]:
    """How each of its processes ended."""
    return [event for event in result.record.events if isinstance(event, ProcessEnded)]


def printed(result: TrialResult) -> str:
    """What its last process wrote."""
    return result.texts[ends(result)[-1].output]


def receipts(result: TrialResult) -> Counter[str]:
    return Counter(event.stage for event in result.record.events if isinstance(event, Faulted))
