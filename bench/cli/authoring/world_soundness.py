"""Check that a pack with a world is sound: the right course is graded correct and does no damage, a wrong course is graded
wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace

from bench.cli.hooks import HookFailed, Hooks
from bench.scenario import Grade
from bench.worlds.run.environment import Environment, World, final_world
from bench.worlds.run.environment.damage import net_effects
from bench.worlds.run.environment.declaration import Course


def problems_of_reference(hooks: Hooks) -> Iterator[str]:
    """Yield the problems of the reference's course, run in a new world. Orphaned effects are not counted: there is no agent
    whose knowledge could be lost."""
    environment = _environment(hooks)
    with closing(World(environment)) as world:
        yield from _taken(hooks, world, environment.reference, "the reference")
        for entry in world.journal():
            if entry.outcome in ("refused", "failed"):
                yield f"{entry.name} in the reference is {entry.outcome}: {entry.reason}"
            elif entry.is_unauthorised:
                yield f"the policy says {entry.decision} ({entry.rule}) to what the reference does: {entry.effect}"
        journal, _ = world.damage()
        for kind, count in asdict(replace(journal, orphaned=0)).items():
            if count:
                yield f"the reference does damage: {count} {kind}"
        yield from _uncounted(world)
        grade = _grade(hooks, world)
        if not grade.correct:
            yield grade.note or "it is not graded correct"


def _uncounted(world: World) -> Iterator[str]:
    """Yield each effect that the audit of the tables counts differently from the journal."""
    stands = {standing.effect: standing.times for standing in world.standings()}
    for effect, times in net_effects(world.environment, world.journal()).items():
        if stands.get(effect, 0) != times:
            audited = f"{stands[effect]} times" if effect in stands else "nothing of it"
            yield f"the audit says {audited}, and the reference did it {times} times: {effect}"


def problems_of_wrong(hooks: Hooks) -> Iterator[str]:
    environment = _environment(hooks)
    if not environment.wrong:
        yield "there is none in Environment.wrong; a grader is only known to be careful by what it refuses"
    for name, course in environment.wrong.items():
        with closing(World(environment)) as world:
            yield from _taken(hooks, world, course, f"the wrong course '{name}'")
            if _grade(hooks, world).correct:
                yield f"'{name}' is graded correct"


def _environment(hooks: Hooks) -> Environment:
    environment = hooks.scenario.environment
    assert isinstance(environment, Environment), "only a pack with a world is asked"
    return environment


def _taken(hooks: Hooks, world: World, course: Course, what: str) -> Iterator[str]:
    try:
        hooks.call(what, course, world)
    except HookFailed as failure:
        yield str(failure)
    world.end()


def _grade(hooks: Hooks, world: World) -> Grade:
    """Grade the world's end. Raise HookFailed if the grader fails or returns no Grade."""
    grade = hooks.call("the grader", hooks.scenario.grade, final_world(world.snapshot().content), hooks.scenario.truth)
    if not isinstance(grade, Grade):
        raise HookFailed(f"the grader returns {type(grade).__name__}; it must return a bench.scenario.Grade")
    return grade
