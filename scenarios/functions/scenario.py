"""Write a small function by its specification. Visible examples are run on the code; hidden tests grade it. See README.md."""

from __future__ import annotations

from bench.run.packs import PackFolder
from bench.scenario import Scenario, Subtask

from . import checks
from .baseline import baseline
from .grader import grade
from .problems import problems
from .schemas import Function, Plan

VARIANTS = ("medium", "easy", "hard")
"""The levels."""


def instances(folder: PackFolder) -> tuple[str, ...]:
    return tuple(problems(folder.variant))


def scenario(folder: PackFolder, instance: str) -> Scenario:
    problem = problems(folder.variant)[instance]
    subtasks = (
        Subtask(
            name="plan",
            instructions=folder.prompt("plan"),
            reads=("specification.md", "examples.txt"),
            output=Plan,
        ),
        Subtask(
            name="code",
            instructions=folder.prompt("code"),
            reads=("specification.md", "examples.txt", "plan"),
            output=Function,
            checks=(checks.it_returns_what_the_examples_show,),
        ),
    )
    return folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        answer=("code",),
        documents=problem.documents,
        reference=problem.reference,
        wrong=problem.wrong_answers,
        truth=problem.truth,
    )
