"""A service is upgraded to a library's next version: branch, rewrites, checks, review, merge, canary, release or retreat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial

from bench.packs import PackFolder
from bench.scenario import Json, Output, Scenario, Subtask, WrongAnswer
from bench.worlds.environment import Environment, JudgmentState, World

from .audit import audit
from .baseline import baseline
from .course import follow, slips_of, wrong_courses
from .events import KINDS, PEOPLE, scheduled
from .expected import base_files
from .grader import grade
from .judgments import RULES, Adapt, Assess, Settle, right
from .policy import POLICY
from .processes import SECONDS
from .reading import READING, rewrites_of
from .repository import pushed, tree_of
from .steps import steps
from .story import ENDS, Case, case_of
from .tables import SCHEMA, rows, upgraded
from .writing import WRITING

VARIANTS = ("upgrade", "upgrade_dev", "yes")
"""Whoever tunes a prompt or a draw looks at the second, whose instances no reference run takes. In the third the reviewer says
yes to everything."""
INSTANCES = 12
GIVEN = ("module", "changes", "diff", "checks", "metrics")
OUTPUTS: dict[str, tuple[tuple[str, ...], type[Output]]] = {
    "adapt": (("module", "changes"), Adapt),
    "risk": (("policy.md", "diff", "checks"), Assess),
    "canary": (("policy.md", "metrics"), Settle),
}


def instances(folder: PackFolder) -> tuple[str, ...]:
    word = "dev" if folder.variant == "upgrade_dev" else "case"
    return tuple(f"{word}_{number:02}" for number in range(1, INSTANCES + 1))


def scenario(folder: PackFolder, instance: str) -> Scenario:
    case = case_of(instance)
    subtasks = tuple(
        Subtask(name, folder.prompt(name), reads, output, checks=RULES[name]) for name, (reads, output) in OUTPUTS.items()
    )
    before = pushed(base_files(case), case) if "pushed" in case.traits else base_files(case)
    return folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        reference=_judged(case),
        wrong=list(_wrong(case)),
        truth={"wanted": case.is_wanted, "before": tree_of(before), "upgraded": tree_of(upgraded(case))},
        made_by=case_of,
        environment=environment(case, folder.variant == "yes", folder.prompt("work")),
    )


def _judged(case: Case) -> dict[str, dict[str, str]]:
    """What is right in the first state of each judgment."""
    module = case.modules[0]
    letter = next(letter for letter, line in rewrites_of(case, module).items() if line == module.right)
    risk = "high" if case.traits & {"pushed", "flaky"} else "low"
    decision = "roll_back" if "legacy" in case.traits else "promote"
    return {"adapt": {"rewrite": letter}, "risk": {"risk": risk}, "canary": {"decision": decision}}


def _wrong(case: Case) -> Iterator[WrongAnswer]:
    """The slips that are wrong in the first state of their judgment."""
    reference = _judged(case)
    for name, (why, slips) in slips_of(case).items():
        outputs = {judgment.partition(" ")[0]: output for judgment, output in slips.items()}
        if not name.startswith("module") or name.startswith("module_1"):
            yield WrongAnswer(name, why, {**reference, **outputs})


def environment(case: Case, lenient: bool = False, work: str = "") -> Environment:
    return Environment(
        schema=SCHEMA,
        rows=rows(case, lenient),
        tools=(*READING, *WRITING),
        audit=audit,
        reference=partial(follow, case, {}),
        wrong=wrong_courses(case, lenient),
        given=GIVEN,
        right=right,
        states=partial(_states, case),
        events=scheduled(case),
        kinds=KINDS,
        people=PEOPLE,
        policy=POLICY,
        throttle=30,
        patience=2 * SECONDS,
        begins=case.moment(0),
        ends=case.moment(ENDS),
        procedure=steps(case),
        work=work,
    )


def _states(case: Case, environment: Environment) -> list[JudgmentState]:
    """Those of the right course, and of the same with each slip: each once, in the order in which the courses come to it."""
    states: dict[str, JudgmentState] = {}

    def noted(subtask: str, documents: Mapping[str, str]) -> Json:
        shown = {name: json.loads(text) for name, text in documents.items()}
        states.setdefault(f"{subtask} {json.dumps(shown)}", JudgmentState(subtask, shown))
        return right(subtask, documents)

    for slips in ({}, *(slips for _, slips in slips_of(case).values())):
        with closing(World(environment)) as world:
            follow(case, slips, world, judged=noted)
    return list(states.values())
