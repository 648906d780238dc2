"""A scenario without a task: each request is answered, faulted and counted, and nothing is graded.

Like a pack it has a digest, here of this file: the code digest leaves it out, since no other scenario's trials depend on it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from bench.scenario import Answer, Grade, Output, Scenario, Subtask, Task

NAME = "free"
REPLY = {"text": "This reply is simulated."}


class FreeReply(Output):
    text: str


def free_scenario() -> Scenario:
    """Return the scenario for a system that asks for its own tasks: nothing is graded."""
    subtask = Subtask("any", "Whatever the system itself asks for.", reads=(), output=FreeReply)
    return Scenario(
        name=NAME,
        variant="",
        task=Task(NAME, "", {}, (subtask,)),
        grade=_never,
        truth=Path(),
        reference={subtask.name: REPLY},
        wrong=(),
        baseline=lambda _: {subtask.name: REPLY},
        graded=False,
        asked=hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:20],
    )


def _never(_: Answer, __: Path) -> Grade:
    raise AssertionError("a scenario without a task has nothing to grade")
