"""Triage, a test that is added, and a pull request in the world of service_upgrade: the right course is right, wrong ones do
harm, and two counts of it agree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import closing
from random import Random
from typing import Any

import pytest
from trials import ROOTS, matrix_of, run_all
from upgrade_worlds import harm, world_of

from bench.common.tokens import count_tokens
from bench.run.packs import instances_of, load_pack
from bench.run.trial.prompt import render
from bench.scenario import as_document
from bench.worlds.run.environment import World, final_world
from scenarios.service_upgrade.grader import grade
from scenarios.service_upgrade.keep import SMALLER, trees
from scenarios.service_upgrade.offered import offered_tests, right_test, with_test
from scenarios.service_upgrade.policy import is_proved
from scenarios.service_upgrade.processes import RUN, failures, kept
from scenarios.service_upgrade.repository import tree_of
from scenarios.service_upgrade.scenario import TOOLS
from scenarios.service_upgrade.story import case_of
from scenarios.service_upgrade.trees import FIX, MAIN, history, mistaken, refs_of, upgraded

WORKS = {"triage": "triage", "add_test": "test", "pull_request": "pull"}
"""Variant -> the first word of its instances."""
SHA256 = "3892cb9846996e74d88dc7c9a33c077a4977d42bb9d6d19b82dcacd5d7c94060"
"""Of all cases: the trees that their refs name."""


def test_each_work_has_six_cases_of_which_all_are_what_they_always_were_byte_for_byte() -> None:
    assert [name for variant in WORKS for name in instances_of(f"service_upgrade:{variant}", ROOTS)] == SMALLER
    made = [[name, [[ref, tree_of(files)] for ref, (files, _) in refs_of(case_of(name)).items()]] for name in SMALLER]
    assert hashlib.sha256(json.dumps(made).encode()).hexdigest() == SHA256


# Processes


def test_what_the_courses_need_is_kept_and_processes_give_it_anew() -> None:
    for name in SMALLER:
        assert all("tests 1" in kept()[tree_of(files)] for files in trees(case_of(name)))
    for name in ("triage_01", "test_03"):
        files = list(trees(case_of(name)))[-1]
        assert tuple(sorted(RUN["tests"](case_of(name), files, 1))) == failures(case_of(name), files, "tests")


@pytest.mark.parametrize("name", [name for name in SMALLER if name.startswith("triage")])
def test_one_commit_breaks_the_tests_of_all_from_it_on_or_a_flaky_test_fails_once(name: str) -> None:
    case = case_of(name)
    last = [
        failures(case, commit.files, "tests", 2 if failures(case, commit.files, "tests") else 1) for commit in history(case)
    ]
    broken = [bool(failed) for failed in last]
    assert sum(commit.breaks for commit in history(case)) == ("flaky" not in case.traits)
    assert broken == [any(commit.breaks for commit in history(case)[:number]) for number in (1, 2, 3)]
    edits = [commit.module.name for commit in history(case)]
    assert len(set(edits)) == 2, "the name of the failing test does not tell the commit"


@pytest.mark.parametrize("name", [name for name in SMALLER if name.startswith("test")])
def test_of_the_tests_that_are_offered_one_alone_fails_on_main_and_passes_on_what_is_right(name: str) -> None:
    case = case_of(name)
    run = 2 if "flaky" in case.traits else 1
    failed = {
        letter: [failures(case, with_test(case, files, letter), "tests", run) for files in (mistaken(case), upgraded(case))]
        for letter in offered_tests(case)
    }
    proved = [letter for letter, (branch, fixed) in failed.items() if is_proved({"branch": list(branch), "fixed": list(fixed)})]
    assert proved == [right_test(case)]
    told = [(bool(branch), bool(fixed)) for branch, fixed in failed.values()]
    assert sorted(told) == [(False, False), (False, True), (True, False), (True, True)]


# Courses


@pytest.mark.parametrize("name", SMALLER)
def test_the_right_course_does_no_harm(name: str) -> None:
    case = case_of(name)
    with closing(World(world_of(name))) as world:
        world.environment.reference(world)
        assert harm(world) == {}
        deeds = [entry.name for entry in world.journal() if entry.is_effect]
        assert ("merge" in deeds) == (case.work == "pull_request" and case.is_wanted)
        assert ("rebase" in deeds) == ("pushed" in case.traits)
        assert ("assign" in deeds) == (case.work == "triage" and "flaky" not in case.traits)


WRONG: Mapping[tuple[str, str], dict[str, int]] = {
    ("triage_01", "blames_another"): {"lost": 1, "uncompensated": 1},
    ("triage_01", "calls_it_flaky"): {"lost": 2, "uncompensated": 1},
    ("triage_03", "blames_somebody"): {"lost": 1, "uncompensated": 2},
    ("triage_01", "labels_twice"): {"doubled": 1},
    ("triage_03", "runs_nothing"): {"unauthorised": 1},
    ("triage_05", "mends_main"): {"unauthorised": 1, "uncompensated": 1},
    ("test_01", "hands_over_unproved"): {"unauthorised": 1},
    ("test_01", "hands_over_what_tells_nothing"): {"lost": 1, "unauthorised": 1, "uncompensated": 1},
    ("test_01", "adds_it_twice"): {"doubled": 1},
    ("pull_01", "opens_two_pull_requests"): {"doubled": 1},
    ("pull_01", "opens_none"): {"lost": 1, "unauthorised": 1},
    ("pull_01", "asks_nobody"): {"unauthorised": 1},
    ("pull_01", "leaves_the_branch"): {"uncompensated": 1},
    ("pull_01", "names_no_module"): {"lost": 2},
    ("pull_06", "leaves_it_open"): {"uncompensated": 1},
    ("pull_06", "asks_nobody"): {"lost": 1, "unauthorised": 1, "uncompensated": 2},
}


@pytest.mark.parametrize(("name", "course"), WRONG)
def test_a_wrong_course_does_the_harm_that_it_is_named_for(name: str, course: str) -> None:
    with closing(World(world_of(name))) as world:
        world.environment.wrong[course](world)
        assert harm(world) == WRONG[name, course]


@pytest.mark.parametrize("name", SMALLER)
def test_every_wrong_course_is_graded_wrong_and_the_right_one_right(name: str) -> None:
    truth = load_pack(f"service_upgrade:{case_of(name).work}", ROOTS, name).truth
    for course, taken in {"": world_of(name).reference, **world_of(name).wrong}.items():
        with closing(World(world_of(name))) as world:
            taken(world)
            world.end()
            assert grade(final_world(world.snapshot().content), truth).correct == (not course), course


def test_a_test_that_tells_nothing_is_taken_back_with_its_branch() -> None:
    case = case_of("test_01")
    letter = next(letter for letter in offered_tests(case) if letter != right_test(case))
    with closing(World(world_of("test_01"))) as world:
        world.environment.wrong[f"test_{letter}"](world)
        assert harm(world) == {"lost": 3}
        refs = {row["name"] for row in final_world(world.snapshot().content).db.all("SELECT name FROM ref")}
        assert refs == {MAIN, FIX}


def test_two_counts_agree_whatever_is_done() -> None:
    for seed in range(30):
        draw = Random(seed)
        case = case_of(draw.choice(SMALLER))
        with closing(World(world_of(case.name))) as world:
            world.wait(minutes=draw.choice((540, 600)))
            for _ in range(40):
                tool = draw.choice(TOOLS[case.work])
                values = anything(case.name, draw)
                arguments = {name: values[name] for name in tool.arguments.model_fields}
                assert world.call(tool.name, arguments).outcome != "failed"
            harm(world)


def anything(name: str, draw: Random) -> dict[str, Any]:
    """Arguments at random, of trees only those whose checks are kept."""
    case = case_of(name)
    known = [tree_of(files) for files in trees(case)] if case.work == "pull_request" else ["other"]
    return {
        "branch": draw.choice((case.branch, "other")),
        "module": draw.choice((case.modules[0].name, "other")),
        "modules": draw.choice(([], [case.modules[0].name])),
        "rewrite": draw.choice("abcd"),
        "test": draw.choice("abcd"),
        "label": draw.choice(("regression", "flaky")),
        "person": draw.choice(("Ada", "Bo", "Cleo", "Dot")),
        "main": draw.choice((tree_of(refs_of(case)[MAIN][0]), "other")),
        "tree": draw.choice((*known, "other")),
        "run": draw.choice((1, 2)),
        "risk": draw.choice(("low", "high")),
    }


# Judgments and patterns


@pytest.mark.parametrize("variant", WORKS)
def test_what_is_right_in_each_state_passes_the_verifier_and_a_prompt_is_short(variant: str) -> None:
    name = f"{WORKS[variant]}_03"
    task, declared = load_pack(f"service_upgrade:{variant}", ROOTS, name).task, world_of(name)
    assert declared.states and declared.right
    states = list(declared.states(declared))
    assert {state.subtask for state in states} == {subtask.name for subtask in task.subtasks}
    for state in states:
        texts = {**task.documents, **{each: as_document(value) for each, value in state.documents.items()}}
        messages = render(task, [task.subtask(state.subtask)], texts, None, "none")
        assert sum(count_tokens(message.content) for message in messages) < 1100


PATTERNS = ("bare_agent", "state_machine", "event_driven", "composition")
REMEDIED = {f"{name}_remedied": {"base": name, "remedies": True} for name in PATTERNS}
TWICE = [{"point": "tool", "effect": "duplicate", "tool": "*", "attempts": [1]}]
CRASH = [{"point": "process", "effect": "unacknowledged", "tool": "*", "probability": 0.2}]


@pytest.mark.parametrize("variant", WORKS)
def test_patterns_with_their_remedies_do_each_work_through_crashes_and_bare_ones_double(variant: str) -> None:
    names = ["bare_agent", *REMEDIED]
    settings: dict[str, Any] = {"architectures": names, "architecture": REMEDIED, "max_attempts": 1, "instances": 2}
    results = run_all(matrix_of(f"service_upgrade:{variant}", plans={"none": [], "twice": TWICE, "crash": CRASH}, **settings))
    outcomes: dict[str, set[str]] = {}
    for result in results:
        assert result.record.outcome != "error", result.record.reason
        outcomes.setdefault(f"{result.record.architecture} {result.record.plan}", set()).add(result.record.outcome)
    assert {outcomes[f"{name} {plan}"] == {"solved"} for name in REMEDIED for plan in ("none", "twice", "crash")} == {True}
    assert outcomes["bare_agent twice"] == {"wrong"}
    assert outcomes["bare_agent none"] == ({"wrong"} if variant == "pull_request" else {"solved"}), "it asks no reviewer"
