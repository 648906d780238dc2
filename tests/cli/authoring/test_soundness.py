"""`bench check` on a pack with a world: the right course is right and does no damage, and a wrong one is found wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from little_worlds import ENVIRONMENT, REFUNDS, ROOT

from bench.cli.authoring.check import check_pack
from bench.cli.authoring.hooks import TaskHooks
from bench.cli.authoring.soundness import WORLD_CHECKS
from bench.scenario import Grade
from bench.worlds.run.environment import Policy, PolicyVerdict, World


def problems(grade: Callable[..., Any] = REFUNDS.grade, **changes: Any) -> list[str]:
    scenario = replace(REFUNDS, environment=replace(ENVIRONMENT, **changes), grade=grade)
    hooks = TaskHooks(scenario, ROOT / "refunds")
    result = [problem for check in WORLD_CHECKS.values() for problem in check(hooks).problems]
    assert not any("\n" in problem for problem in result)
    return result


def twice(world: World) -> None:
    ENVIRONMENT.reference(world)
    ENVIRONMENT.reference(world)


def breaks(world: World) -> None:
    raise KeyError(world.now)


def nothing(_: World) -> None:
    pass


def impatient(world: World) -> None:
    world.call("release", {"order": 1})
    ENVIRONMENT.reference(world)


def forbids(*_: Any) -> PolicyVerdict:
    return PolicyVerdict("deny", "never")


UNSOUND: list[tuple[Mapping[str, Any], str]] = [
    ({"reference": nothing}, "the reference does damage: 4 lost"),
    ({"reference": nothing}, "1 of 3 orders are settled right"),
    ({"reference": impatient}, "release in the reference is refused: nothing is reserved for order 1"),
    ({"reference": breaks}, "the reference raises KeyError"),
    ({"policy": Policy("2", forbids)}, "the policy says deny (never) to what the reference does: refund of order 1"),
    ({"wrong": {"right": ENVIRONMENT.reference}}, "'right' is graded correct"),
    ({"wrong": {}}, "a grader is only known to be careful by what it refuses"),
    ({"wrong": {"breaks": breaks}}, "the wrong course 'breaks' raises KeyError"),
    ({"audit": lambda _: []}, "the audit says nothing of it, and the reference did it 1 times: refund of order 1"),
    ({"grade": lambda *_: Grade(False, 0.0, {}, "never")}, "never"),
    ({"grade": lambda *_: None}, "the grader returns NoneType"),
]


def test_the_world_of_the_tests_is_sound() -> None:
    assert [result.problems for _, result in check_pack("refunds", [ROOT]) if result.problems] == []
    assert problems() == []


@pytest.mark.parametrize(("changes", "words"), UNSOUND)
def test_what_is_unsound_is_said_in_a_line(changes: Mapping[str, Any], words: str) -> None:
    assert [problem for problem in problems(**changes) if words in problem]
