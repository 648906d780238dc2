"""Upgrade a service to a library's next version: branch, rewrites, checks, review, merge, canary, release or rollback. Three
smaller tasks use the same world: triage a failing test, add a test, open a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial

from bench.run.packs import PackFolder
from bench.scenario import Json, Output, Scenario, Subtask, WrongAnswer
from bench.worlds.run.environment import Environment, JudgmentState, Tool, World

from .audit import audit
from .baseline import baseline
from .course import follow, slips_of, wrong_courses
from .database import holding, migrated
from .events import KINDS, PEOPLE, scheduled
from .grader import grade
from .judgments import (
    RULES,
    Adapt,
    Assess,
    Blame,
    Choose,
    Describe,
    Settle,
    WriteLine,
    WriteTest,
    line_has_its_form,
    right,
)
from .offered import right_test
from .policy import POLICY
from .processes import SECONDS
from .reading import READ_LOG, READ_MISTAKE, READING, rewrite_of
from .repository import blob_of, pushed, tree_of
from .steps import steps
from .story import ENDS, Case, Work, case_of
from .tables import SCHEMA, rows
from .trees import MAIN, history, refs_of, upgraded
from .writing import ADD_TEST, ADD_WRITTEN, PULL_REQUEST, REWRITE_WRITTEN, TRIAGE, WRITING

VARIANTS = ("upgrade", "upgrade_dev", "yes", "triage", "add_test", "pull_request", "write_test", "write_change")
"""Whoever tunes a prompt or a draw looks at the second, whose instances no reference run takes. In the third the reviewer says
yes to everything. The others are smaller works in the same world; in the last two the model writes the code."""
WORDS: Mapping[str, str] = {
    "upgrade_dev": "dev",
    "triage": "triage",
    "add_test": "test",
    "pull_request": "pull",
    "write_test": "proof",
    "write_change": "written",
}
"""Variant -> the first word of its instances; that of the others is `case`."""
INSTANCES, FEWER = 12, 6
GIVEN: Mapping[Work, tuple[str, ...]] = {
    "upgrade": ("module", "changes", "diff", "checks", "metrics"),
    "triage": ("log",),
    "add_test": ("mistake", "changes"),
    "pull_request": ("module", "changes", "diff", "checks"),
}
OUTPUTS: dict[str, tuple[tuple[str, ...], type[Output]]] = {
    "adapt": (("module", "changes"), Adapt),
    "risk": (("policy.md", "diff", "checks"), Assess),
    "canary": (("policy.md", "metrics"), Settle),
    "blame": (("policy.md", "log"), Blame),
    "choose": (("policy.md", "mistake", "changes"), Choose),
    "write_test": (("policy.md", "mistake", "changes"), WriteTest),
    "describe": (("policy.md", "diff", "checks"), Describe),
}
JUDGMENTS: Mapping[Work, tuple[str, ...]] = {
    "upgrade": ("adapt", "risk", "canary"),
    "triage": ("blame",),
    "add_test": ("choose",),
    "pull_request": ("adapt", "describe"),
}
RELEASE = ("read_metrics", "migrate", "start_canary", "promote", "migrate_back", "roll_back")
WRITES = "What is chosen above is written here: the line itself, or the test itself, takes the place of a letter."
ON_BRANCHES = ("read_service", "read_refs", "read_diff", "read_checks", "open_branch", "run_tests", "delete_branch")


def _tools(*names: str) -> tuple[Tool, ...]:
    return tuple(tool for tool in (*READING, *WRITING) if tool.name in names)


TOOLS: Mapping[Work, tuple[Tool, ...]] = {
    "upgrade": (*READING, *WRITING),
    "triage": (READ_LOG, *_tools(*ON_BRANCHES, "rewrite", "merge", "revert_merge"), *TRIAGE),
    "add_test": (READ_MISTAKE, *_tools(*ON_BRANCHES, "read_changes", "hand_over"), *ADD_TEST),
    "pull_request": (*(tool for tool in (*READING, *WRITING) if tool.name not in RELEASE), *PULL_REQUEST),
}


def _tools_of(case: Case) -> tuple[Tool, ...]:
    if not case.is_written:
        return TOOLS[case.work]
    written = {tool.name: tool for tool in (REWRITE_WRITTEN, *ADD_WRITTEN)}
    return tuple(written.get(tool.name, tool) for tool in TOOLS[case.work])


def instances(folder: PackFolder) -> tuple[str, ...]:
    word = WORDS.get(folder.variant, "case")
    return tuple(f"{word}_{number:02}" for number in range(1, (INSTANCES if word in ("case", "dev") else FEWER) + 1))


def scenario(folder: PackFolder, instance: str) -> Scenario:
    case = case_of(instance)
    subtasks = tuple(_subtask(case, folder, name) for name in JUDGMENTS[case.work])
    main, _ = refs_of(case)[MAIN]
    before = pushed(main, case) if "pushed" in case.traits else main
    smaller = case.work != "upgrade"
    database = migrated(holding(case.production)) if case.is_wanted and not smaller else holding(case.production)
    made = folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        reference=_judged(case),
        wrong=list(_wrong(case)),
        documents={"policy.md": folder.prompt("policy")} if smaller else None,
        truth={
            "work": case.work,
            "database": blob_of(database),
            "wanted": case.is_wanted,
            "before": tree_of(before),
            "upgraded": tree_of(upgraded(case)),
        },
        made_by=case_of,
        environment=environment(case, folder.variant == "yes", _work(case, folder)),
    )
    return replace(made, task=replace(made.task, role=folder.prompt("maintainer"))) if smaller else made


def _subtask(case: Case, folder: PackFolder, judgment: str) -> Subtask:
    name = case.choosing if judgment == "choose" else judgment
    reads, output = OUTPUTS[name]
    if case.is_written and name == "adapt":
        return Subtask(name, folder.prompt("write_line"), reads, WriteLine, checks=(line_has_its_form,))
    return Subtask(name, folder.prompt(name), reads, output, checks=RULES[name])


def _work(case: Case, folder: PackFolder) -> str:
    """Return the steps in words, for an agent that is told what to do."""
    if case.work == "upgrade":
        return folder.prompt("work")
    return "\n".join([folder.prompt(f"work_{case.work}"), *([WRITES] if case.is_written else [])])


def _judged(case: Case) -> dict[str, dict[str, Json]]:
    """Return the right output in the first state of each judgment."""
    if case.work == "triage":
        breaking = [str(commit.number) for commit in history(case) if commit.breaks]
        blame = {"label": "regression", "commit": breaking[0]} if breaking else {"label": "flaky", "commit": "none"}
        return {"blame": blame}
    if case.work == "add_test":
        return {case.choosing: {"test": right_test(case)}}
    module = case.modules[0]
    rewrite = rewrite_of(case, module, module.right)
    risk = "high" if case.traits & {"pushed", "flaky"} else "low"
    if case.work == "pull_request":
        return {"adapt": {"rewrite": rewrite}, "describe": {"modules": [module.name], "risk": risk}}
    decision = "roll_back" if "legacy" in case.traits else "promote"
    return {"adapt": {"rewrite": rewrite}, "risk": {"risk": risk}, "canary": {"decision": decision}}


def _wrong(case: Case) -> Iterator[WrongAnswer]:
    """Yield the slips that are wrong in the first state of their judgment."""
    reference = _judged(case)
    for name, (why, slips) in slips_of(case).items():
        outputs = {judgment.partition(" ")[0]: output for judgment, output in slips.items()}
        if not name.startswith("module") or name.startswith("module_1"):
            whole = {judgment: {**right_one, **outputs.get(judgment, {})} for judgment, right_one in reference.items()}
            yield WrongAnswer(name, why, whole)


def environment(case: Case, lenient: bool = False, work: str = "") -> Environment:
    return Environment(
        schema=SCHEMA,
        rows=rows(case, lenient),
        tools=_tools_of(case),
        audit=audit,
        reference=partial(follow, case, {}),
        wrong=wrong_courses(case, lenient),
        given=GIVEN[case.work],
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
    """Return the states of the right course, and of the same course with each slip: each state once, in the order in which the
    courses reach it."""
    states: dict[str, JudgmentState] = {}

    def noted(subtask: str, documents: Mapping[str, str]) -> Json:
        shown = {name: json.loads(text) for name, text in documents.items()}
        states.setdefault(f"{subtask} {json.dumps(shown)}", JudgmentState(subtask, shown))
        return right(subtask, documents)

    for slips in ({}, *(slips for _, slips in slips_of(case).values())):
        with closing(World(environment)) as world:
            follow(case, slips, world, judged=noted)
    return list(states.values())
