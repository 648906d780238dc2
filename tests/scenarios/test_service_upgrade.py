"""The pack service_upgrade: the same everywhere, right courses are right, wrong ones do harm, and two counts of it agree."""

from __future__ import annotations

import hashlib
import json
import subprocess
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest
from trials import matrix_of, run_all
from upgrade_worlds import harm, world_of

from bench.common.tokens import count_tokens
from bench.record.world_events import ToolCalled
from bench.run.packs import instances_of, load_pack
from bench.run.trial.prompt import render
from bench.scenario import as_document
from bench.worlds.run.environment import World, final_world
from scenarios.service_upgrade.course import follow
from scenarios.service_upgrade.database import holding, migrated
from scenarios.service_upgrade.expected import base_files
from scenarios.service_upgrade.keep import CASES, trees
from scenarios.service_upgrade.processes import RUN, Command, failures, kept
from scenarios.service_upgrade.repository import blob_of, tree_of
from scenarios.service_upgrade.story import TRAITS, Case, case_of
from scenarios.service_upgrade.trees import upgraded

ROOTS = [Path(__file__).parents[2] / "scenarios"]
SHA256 = "1dc8ab0f41b87c6c0eec162bd1698d903f2fb00f434f7728c85bca16b1d69dd9"
"""Of all cases: the trees that they begin with and that are right in the end."""
PLAIN, PUSHED, FLAKY, LEGACY, REFUSED = "case_01", "case_02", "case_03", "case_04", "case_06"


def harm_of(instance: str, course: str) -> dict[str, int]:
    with closing(World(world_of(instance))) as world:
        world.environment.wrong[course](world)
        return harm(world)


# Cases


def test_there_are_12_cases_and_12_for_development_of_which_no_run_takes_any() -> None:
    assert [*instances_of("service_upgrade", ROOTS), *instances_of("service_upgrade:upgrade_dev", ROOTS)] == CASES
    assert instances_of("service_upgrade:yes", ROOTS) == tuple(CASES[:12])


def test_all_cases_are_what_they_always_were_byte_for_byte() -> None:
    made = [[name, tree_of(base_files(case_of(name))), tree_of(upgraded(case_of(name)))] for name in CASES]
    assert len({tree for _, *both in made for tree in both}) == 2 * len(CASES)
    assert hashlib.sha256(json.dumps(made).encode()).hexdigest() == SHA256


def test_each_trait_stands_in_two_cases_of_twelve_or_more() -> None:
    assert all(sum(trait in traits for traits in TRAITS) >= 2 for trait in ("pushed", "flaky", "legacy", "refused"))


def test_git_itself_gives_a_tree_the_same_digest(tmp_path: Path) -> None:
    files = upgraded(case_of(FLAKY))
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    assert git("write-tree").startswith(tree_of(files))


# Processes


def test_what_the_right_courses_and_the_wrong_ones_need_is_kept() -> None:
    for name in CASES:
        for files in trees(case_of(name)):
            assert {f"{command} 1" for command in ("tests", "lint", "instance")} <= set(kept()[tree_of(files)])


@pytest.mark.parametrize(
    "command", ["tests", "instance", pytest.param("lint", marks=pytest.mark.skipif(not find_spec("ruff"), reason="needs ruff"))]
)
def test_processes_give_what_is_kept(command: Command) -> None:
    """pytest, ruff and the service run anew, on a right tree and on one that passes its tests and answers otherwise."""
    case = case_of(FLAKY)
    right, *wrong = trees(case)
    for files in (right, wrong[0]):
        assert tuple(sorted(RUN[command](case, files, 1))) == failures(case, files, command)


def test_a_flaky_test_fails_once_and_a_wrong_tree_answers_otherwise() -> None:
    case = case_of(FLAKY)
    right, *wrong = trees(case)
    assert failures(case, right, "tests") and not failures(case, right, "tests", 2)
    assert not failures(case, right, "instance") and failures(case, wrong[0], "instance")


def test_a_canary_fails_where_the_database_in_use_holds_what_the_next_version_refuses() -> None:
    for name, fails in ((PLAIN, False), (LEGACY, True)):
        case = case_of(name)
        assert bool(failures(case, upgraded(case), "canary")) == fails
    case = case_of(LEGACY)
    assert tuple(sorted(RUN["canary"](case, upgraded(case), 1))) == failures(case, upgraded(case), "canary")


# Courses


@pytest.mark.parametrize("instance", CASES)
def test_the_right_course_does_no_harm_and_ends_as_the_case_is(instance: str) -> None:
    case = case_of(instance)
    with closing(World(world_of(instance))) as world:
        follow(case, {}, world)
        assert harm(world) == {}
        deeds = [entry.name for entry in world.journal() if entry.is_effect]
        assert ("promote" in deeds) == case.is_wanted and ("hand_over" in deeds) != case.is_wanted
        assert ("rebase" in deeds) == ("pushed" in case.traits)
        assert deeds.count("run_tests") == 1 + ("flaky" in case.traits)


WRONG: dict[tuple[str, str], dict[str, int]] = {
    (PLAIN, "tests_nothing"): {"unauthorised": 1},
    (PLAIN, "asks_nobody"): {"unauthorised": 1},
    (PLAIN, "merges_twice"): {"doubled": 1},
    (PLAIN, "releases_twice"): {"doubled": 1},
    (PLAIN, "leaves_the_branch"): {"uncompensated": 1},
    (PLAIN, "leaves_the_instance"): {"uncompensated": 1},
    (LEGACY, "leaves_the_canary"): {"uncompensated": 2},
    (LEGACY, "leaves_the_migration"): {"uncompensated": 1},
    (LEGACY, "misreads_the_canary"): {"unauthorised": 1, "uncompensated": 3, "lost": 1},
    (REFUSED, "asks_nobody"): {"unauthorised": 1, "uncompensated": 3, "lost": 1},
}


@pytest.mark.parametrize(("instance", "course"), WRONG)
def test_a_wrong_course_does_the_harm_that_it_is_named_for(instance: str, course: str) -> None:
    assert harm_of(instance, course) == WRONG[instance, course]


def test_a_migration_is_not_taken_back_while_a_canary_writes_to_its_columns() -> None:
    with closing(World(world_of(LEGACY))) as world:
        world.environment.wrong["leaves_the_canary"](world)
        refused = [entry.reason for entry in world.journal() if entry.outcome == "refused"]
        assert refused == ["a canary writes to the new columns: they would be lost"]


@pytest.mark.parametrize("instance", [PLAIN, LEGACY])
def test_a_migration_exchanges_the_database_in_use_and_the_way_back_gives_the_first_byte_for_byte(instance: str) -> None:
    case = case_of(instance)
    before = holding(case.production)
    after = migrated(before)
    assert after != before == migrated(after, back=True) and migrated(after) == after
    with closing(World(world_of(instance))) as world:
        follow(case, {}, world)
        db = final_world(world.snapshot().content).db
        texts = {row["id"]: row["text"] for row in db.all("SELECT * FROM blob")}
        assert texts[blob_of(before)] == before and texts[blob_of(after)] == after
        assert texts[db.value("SELECT database FROM production")] == (after if case.is_wanted else before)


def test_a_branch_that_is_behind_main_is_not_merged() -> None:
    case = case_of(PUSHED)
    with closing(World(world_of(PUSHED))) as world:
        follow(case, {}, world, left_out="rebase", reviewed=False)
        assert "main has moved since: rebase first" in {entry.reason for entry in world.journal()}


def test_two_counts_agree_whatever_is_done() -> None:
    for seed in range(30):
        draw = Random(seed)
        case = case_of(draw.choice(CASES))
        with closing(World(world_of(case.name))) as world:
            world.wait(minutes=draw.choice((540, 600)))
            for _ in range(40):
                tool = draw.choice(world.environment.tools)
                values = anything(case, draw)
                arguments = {name: values[name] for name in tool.arguments.model_fields}
                assert world.call(tool.name, arguments).outcome != "failed"
            harm(world)


def anything(case: Case, draw: Random) -> dict[str, Any]:
    """Arguments at random, of trees only those whose checks are kept."""
    known = [tree_of(files) for files in trees(case)]
    return {
        "branch": draw.choice((case.branch, "other")),
        "module": draw.choice((case.modules[0].name, "other")),
        "rewrite": draw.choice("abcd"),
        "main": draw.choice((tree_of(base_files(case)), "other")),
        "tree": draw.choice((*known, "other")),
        "run": draw.choice((1, 2)),
        "risk": draw.choice(("low", "high")),
        "percent": draw.choice((5, 20, 50)),
    }


# Judgments and patterns


def test_what_is_right_in_each_state_passes_the_verifier_and_a_prompt_is_short() -> None:
    task = load_pack("service_upgrade", ROOTS, FLAKY).task
    declared = world_of(FLAKY)
    assert declared.states and declared.right
    states = list(declared.states(declared))
    assert {state.subtask for state in states} == {"adapt", "risk", "canary"}
    for state in states:
        texts = {**task.documents, **{name: as_document(value) for name, value in state.documents.items()}}
        messages = render(task, [task.subtask(state.subtask)], texts, None, "none")
        assert sum(count_tokens(message.content) for message in messages) < 900


REMEDIED = {
    name: {"base": name.removesuffix("_remedied"), "remedies": True}
    for name in ("bare_agent_remedied", "state_machine_remedied", "event_driven_remedied", "composition_remedied")
}


@pytest.mark.parametrize("instance", [PLAIN, PUSHED, FLAKY, LEGACY, REFUSED])
def test_patterns_with_their_remedies_solve_each_kind_of_case_and_bare_ones_ask_nobody(instance: str) -> None:
    names = ["bare_agent", *REMEDIED]
    results = run_all(matrix_of(f"service_upgrade/{instance}", architectures=names, architecture=REMEDIED, max_attempts=1))
    outcomes = {result.record.architecture: result.record.outcome for result in results}
    assert outcomes == {"bare_agent": "wrong", **dict.fromkeys(REMEDIED, "solved")}


def test_a_bare_state_machine_that_dies_between_migration_and_canary_migrates_again() -> None:
    """Its state `deploy` has two effects, and is left after both."""
    plan = [{"point": "process", "effect": "before", "tool": "start_canary", "attempts": [1]}]
    matrix = matrix_of(
        f"service_upgrade/{PUSHED}", plans={"before_canary": plan}, architectures=["state_machine"], max_attempts=1
    )
    [result] = [result for result in run_all(matrix) if result.record.plan == "before_canary"]
    calls = [event for event in result.record.events if isinstance(event, ToolCalled)]
    deploying = [(call.tool, call.life, call.outcome) for call in calls if call.tool in ("migrate", "start_canary")]
    assert deploying == [
        *(("migrate", 1, "done"), ("migrate", 2, "done")),
        ("start_canary", 2, "done"),
    ]
