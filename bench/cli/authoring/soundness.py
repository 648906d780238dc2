"""The checks that make a pack sound. Each check takes one scenario and returns all problems of the scenario, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from bench.cli.authoring.hooks import HookFailed, Hooks, TaskHooks
from bench.common.seeding import draw_for
from bench.record.events import Called
from bench.record.record import TrialRecord
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment.config import Config
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.model_entries import SimulatedEntry
from bench.run.experiment.trial import run_trial
from bench.run.packs.code import code_of, defining_file
from bench.run.packs.loading import entry_of
from bench.run.trial.effects import EFFECTS, Target, TextEffect, dump
from bench.run.trial.loop import run
from bench.run.trial.reply import parts_of
from bench.run.trial.slots import Slots
from bench.run.trial.verification import Rejected, judge, validate
from bench.scenario import Grade, Json, Output, Scenario, Subtask, WrongAnswer
from bench.worlds.run.environment import Environment, World, final_world
from bench.worlds.run.environment.damage import net_effects
from bench.worlds.run.environment.declaration import Course

DRAWS_PER_EFFECT = 20
"""How many random draws of an effect strike the reference's reply to a subtask."""
SHORTEST_LEAK = 16
"""The least characters of a leak. A prompt may contain a shorter text of the reference answer, such as a service's name."""


@dataclass(frozen=True)
class Soundness:
    """The result of one check of one scenario: the problems, one line each, and a note on what was measured.

    excess   a problem only if too many instances of the pack have it
    """

    problems: tuple[str, ...] = ()
    detail: str = ""
    excess: str = ""


def reference_is_accepted(hooks: TaskHooks) -> Soundness:
    """Check that the reference answer passes every schema and check."""
    return Soundness(tuple(_objections(hooks, _outputs(hooks.scenario, {}), objections_count=True)))


def _outputs(scenario: Scenario, wrong: Mapping[str, Json]) -> dict[str, Output]:
    """Return the outputs of the reference as their types, with some outputs replaced."""
    values = {**scenario.reference, **wrong}
    return {subtask.name: subtask.output.model_validate(values[subtask.name]) for subtask in scenario.task.subtasks}


def _objections(hooks: TaskHooks, outputs: dict[str, Output], *, objections_count: bool) -> Iterator[str]:
    """Call every check and signal of every subtask, and yield the objections and the functions that fail. If objections do not
    count, yield only the functions that fail."""
    for subtask in hooks.scenario.task.subtasks:
        output = outputs[subtask.name]
        calls: tuple[tuple[str, Callable[..., Any], tuple[object, ...]], ...] = (
            (subtask.name, hooks.objection, (subtask, outputs)),
            (f"{subtask.name}: too weak", hooks.weakness, (subtask, output)),
            ("", hooks.skipped, (subtask, outputs)),  # "": its answer is no objection
            (f"{subtask.name} finds it wrong", hooks.finding, (subtask, output)),
        )
        for label, ask, values in calls:
            try:
                objection = ask(*values)
            except HookFailed as failure:
                yield str(failure)
            else:
                if objections_count and label and objection is not None:
                    yield f"{label}: {objection}"


def reference_is_right(hooks: TaskHooks) -> Soundness:
    """Check that the reference answer is graded correct."""
    try:
        grade = hooks.grade(hooks.scenario.reference)
    except HookFailed as failure:
        return Soundness((str(failure),))
    return Soundness(() if grade.correct else (grade.note or "it is not",))


def wrong_are_wrong(hooks: TaskHooks) -> Soundness:
    """Check that every wrong answer is graded wrong."""
    scenario = hooks.scenario
    if not scenario.wrong:
        return Soundness(("there is none in reference/wrong; a grader is only known to be careful by what it refuses",))
    problems: dict[str, list[str]] = {}
    for wrong in scenario.wrong:
        for problem in _problems_of(hooks, wrong):
            problems.setdefault(problem, []).append(f"'{wrong.name}'")
    lines = tuple(f"{', '.join(names)} {problem}" for problem, names in problems.items())
    return Soundness(lines, f"{len(scenario.wrong)} of them")


def _problems_of(hooks: TaskHooks, wrong: WrongAnswer) -> Iterator[str]:
    """Yield the problems of one wrong answer."""
    for failure in _objections(hooks, _outputs(hooks.scenario, wrong.outputs), objections_count=False):
        yield f"cannot be verified: {failure}"
    try:
        if hooks.grade({**hooks.scenario.reference, **wrong.outputs}).correct:
            yield f"is graded correct, though {wrong.why}"
    except HookFailed as failure:
        yield f"cannot be graded: {failure}"


def faults_are_caught(hooks: TaskHooks) -> Soundness:
    """Check that a reply which a fault broke is rejected in every subtask."""
    return Soundness(tuple(chain.from_iterable(_undetected_faults(hooks, subtask) for subtask in hooks.scenario.task.subtasks)))


def _undetected_faults(hooks: TaskHooks, subtask: Subtask) -> Iterator[str]:
    """Yield a line for each effect that should break the reply to a subtask, but whose result every check accepts. An effect
    that does not apply to the reply is no problem: a note names it."""
    try:
        for effect in _breaking_effects():
            for number in range(DRAWS_PER_EFFECT):
                if hooks.call(f"a check of '{subtask.name}'", _is_undetected, hooks.scenario, subtask, effect, number):
                    yield f"{effect.name} in the reply to '{subtask.name}' passed as a valid output"
                    break
    except HookFailed as failure:
        yield str(failure)


def _breaking_effects() -> list[TextEffect]:
    """Return the effects after which no reply should be a valid output."""
    return [entry for entry in EFFECTS if isinstance(entry, TextEffect) and entry.breaks_form]


def _is_undetected(scenario: Scenario, subtask: Subtask, effect: TextEffect, number: int) -> bool:
    """Return whether this effect changes the reference's reply, and every check accepts the changed reply."""
    text = _reply_with_fault(scenario, subtask, effect, number)
    if text is None:
        return False
    values = {name: part.value for name, part in parts_of(text, "stop", [subtask]).items()}
    if values[subtask.name] == scenario.reference[subtask.name]:
        return False  # the effect is to blame, and no pack: a note names it
    return not isinstance(judge([subtask], values, scenario.task.documents, {})[subtask.name], Rejected)


def _inapplicable_effects(scenario: Scenario) -> Iterator[str]:
    """Yield a line for each effect that should break an output but does not apply to some reply."""
    for effect in _breaking_effects():
        for subtask in scenario.task.subtasks:
            if all(_reply_with_fault(scenario, subtask, effect, number) is None for number in range(DRAWS_PER_EFFECT)):
                yield (
                    f"{effect.name} is not applicable to the reply to '{subtask.name}': no trial can have it there, and it "
                    "tried no check"
                )


def _reply_with_fault(scenario: Scenario, subtask: Subtask, effect: TextEffect, number: int) -> str | None:
    """Return the reference's reply to a subtask as this effect changes it; None if the effect does not apply to the reply."""
    value = scenario.reference[subtask.name]
    draw = draw_for("check", scenario.name, subtask.name, effect.name, number)
    return effect.strike(Target(dump(value), value, subtask.output), draw)


def _harmless_effects(scenario: Scenario) -> Iterator[str]:
    """Yield a line for each effect that should break an output but leaves the content of some reply unchanged."""
    for effect in _breaking_effects():
        for subtask in scenario.task.subtasks:
            text, value = _reply_with_fault(scenario, subtask, effect, 0), scenario.reference[subtask.name]
            if text is not None and parts_of(text, "stop", [subtask])[subtask.name].value == value:
                yield (
                    f"the effect '{effect.name}' says breaks_form, but the reply to '{subtask.name}' reads the same after it: "
                    "mend the effect; no trial can have it"
                )
                break


def nothing_leaks(hooks: TaskHooks) -> Soundness:
    """Check that no prompt contains the answer."""
    return Soundness(tuple(dict.fromkeys(_leaks(hooks.scenario))))


def _leaks(scenario: Scenario) -> Iterator[str]:
    """Yield a line for each secret in a prompt or a document, and for each text of the answer in a prompt."""
    prompts = {f"the prompt of '{subtask.name}'": subtask.instructions for subtask in scenario.task.subtasks}
    documents = {f"the document '{name}'": text for name, text in scenario.task.documents.items()}
    for secret in scenario.secrets:
        for source, text in {**prompts, **documents}.items():
            if secret.lower() in text.lower():
                yield f"{source} says '{secret}'"
    for leaf in _texts_in(list(scenario.reference.values())):
        for source, text in prompts.items():
            if len(leaf) >= SHORTEST_LEAK and leaf.lower() in text.lower():
                yield f"{source} says '{leaf}', which stands in the reference answer"


def _texts_in(value: Json) -> Iterator[str]:
    """Yield all texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(item)


def baseline_fails(hooks: TaskHooks) -> Soundness:
    """Check that the keyword rules of the baseline do not solve the pack."""
    try:
        answer = hooks.baseline()
        if not answer:
            return Soundness(detail="they find no answer")
        missing_names = [name for name in hooks.scenario.task.answer_names if name not in answer]
        if missing_names:
            return Soundness((f"the baseline's answer has no output for '{missing_names[0]}'",))
        for name in hooks.scenario.task.answer_names:
            verdict = hooks.call("an output type", validate, hooks.scenario.task.subtask(name), answer[name])
            if isinstance(verdict, Rejected):
                return Soundness((f"the baseline's answer does not fit the schema of '{name}': {verdict.detail}",))
        grade = hooks.grade(answer)
    except HookFailed as failure:
        return Soundness((str(failure),))
    if grade.correct:
        return Soundness(excess="the baseline is graded correct: the pack is too easy to tell anything")
    return Soundness(detail=f"they score {grade.score:.2f}")


def every_architecture_solves_it(hooks: TaskHooks) -> Soundness:
    """Check that every architecture solves the scenario without a retry, with a model that knows the reference."""
    try:
        records = hooks.call("an architecture", lambda: run(_run_with_reference(hooks.scenario)))
    except HookFailed as failure:
        return Soundness((str(failure),))
    failures: dict[str, list[str]] = {}
    for record in records:
        if problem := _failure(record):
            failures.setdefault(problem, []).append(record.architecture)
    return Soundness(tuple(f"{', '.join(architectures)}: {problem}" for problem, architectures in failures.items()))


def _failure(record: TrialRecord) -> str | None:
    """Return why a record shows a failure or a retry; None if it shows neither."""
    if record.outcome != "solved":
        return f"{record.outcome} {record.reason}".rstrip()
    if any(isinstance(event, Called) and event.cause != "first" for event in record.events):
        return "asked again: a check, `sufficient` or `finds` objects to the reference"
    return None


async def _run_with_reference(scenario: Scenario) -> list[TrialRecord]:
    """Run every architecture on the scenario with a model that returns the reference."""
    # Another package's architecture may ask twice by design, and soundness must not depend on what is installed.
    ours = (part for part in ARCHITECTURES if not part.package and not part.learns)
    config = Config(
        name="check",
        scenarios=(scenario.name,),
        architectures=tuple(part.name for part in ours if part.acts_in == "task" and not part.makes_own_calls),
        models=("reference",),
        repetitions=1,
        seed=0,
        model={"reference": SimulatedEntry(kind="simulated", wrapping=False)},
    )
    # The matrix gets the scenario, so that it does not load another instance of the pack.
    matrix = build_matrix(config, (), code_digest="", scenarios={scenario.name: scenario})
    graders = Graders()
    return [(await run_trial(spec, matrix, Slots(), graders)).record for spec in matrix.specs]


CHECKS: dict[str, Callable[[TaskHooks], Soundness]] = {
    "the reference answer passes every schema and check": reference_is_accepted,
    "the reference answer is graded correct": reference_is_right,
    "every wrong answer is graded wrong": wrong_are_wrong,
    "a reply that a fault broke is rejected in every subtask": faults_are_caught,
    "no prompt gives the answer away": nothing_leaks,
    "keyword rules alone do not solve it": baseline_fails,
    "with a model that knows the reference, every architecture solves it, without a retry": every_architecture_solves_it,
}
"""The title of each check of a pack without a world -> the check."""


# In a world


def reference_problems(hooks: Hooks) -> Iterator[str]:
    """Yield the problems of the reference course, run in a new world. Orphaned effects are not counted, because without an
    agent no knowledge can be lost."""
    environment = _environment(hooks)
    with closing(World(environment)) as world:
        yield from _run_course(hooks, world, environment.reference, "the reference")
        for entry in world.journal():
            if entry.outcome in ("refused", "failed"):
                yield f"{entry.name} in the reference is {entry.outcome}: {entry.reason}"
            elif entry.is_unauthorised:
                yield f"the policy says {entry.decision} ({entry.rule}) to what the reference does: {entry.effect}"
        journal, _ = world.damage()
        for kind, count in asdict(replace(journal, orphaned=0)).items():
            if count:
                yield f"the reference does damage: {count} {kind}"
        yield from _miscounted_effects(world)
        grade = _grade(hooks, world)
        if not grade.correct:
            yield grade.note or "it is not graded correct"


def _miscounted_effects(world: World) -> Iterator[str]:
    """Yield a line for each effect whose count in the audit of the tables differs from its count in the journal."""
    audited_counts = {standing.effect: standing.times for standing in world.standings()}
    for effect, times in net_effects(world.environment, world.journal()).items():
        if audited_counts.get(effect, 0) != times:
            audit_words = f"{audited_counts[effect]} times" if effect in audited_counts else "nothing of it"
            yield f"the audit says {audit_words}, and the reference did it {times} times: {effect}"


def wrong_course_problems(hooks: Hooks) -> Iterator[str]:
    """Yield the problems of the wrong courses, which must be graded wrong."""
    environment = _environment(hooks)
    if not environment.wrong:
        yield "there is none in Environment.wrong; a grader is only known to be careful by what it refuses"
    for name, course in environment.wrong.items():
        with closing(World(environment)) as world:
            yield from _run_course(hooks, world, course, f"the wrong course '{name}'")
            if _grade(hooks, world).correct:
                yield f"'{name}' is graded correct"


def _environment(hooks: Hooks) -> Environment:
    """Return the scenario's environment. Only a pack with a world has one."""
    environment = hooks.scenario.environment
    assert isinstance(environment, Environment), "only a pack with a world is asked"
    return environment


def _run_course(hooks: Hooks, world: World, course: Course, label: str) -> Iterator[str]:
    """Run a course in a world to its end, and yield an error of the course."""
    try:
        hooks.call(label, course, world)
    except HookFailed as failure:
        yield str(failure)
    world.end()


def _grade(hooks: Hooks, world: World) -> Grade:
    """Grade the end state of the world. Raises HookFailed if the grader fails or returns no Grade."""
    grade = hooks.call("the grader", hooks.scenario.grade, final_world(world.snapshot().content), hooks.scenario.truth)
    if not isinstance(grade, Grade):
        raise HookFailed(f"the grader returns {type(grade).__name__}; it must return a bench.scenario.Grade")
    return grade


def _soundness_of(problems: Callable[[TaskHooks], Iterator[str]], hooks: TaskHooks) -> Soundness:
    """Return the problems that a check yields as its result."""
    try:
        return Soundness(tuple(problems(hooks)))
    except HookFailed as failure:
        return Soundness((str(failure),))


WORLD_CHECKS: dict[str, Callable[[TaskHooks], Soundness]] = {
    "the reference solves it in its world, without damage, and nothing that it does is refused or forbidden": partial(
        _soundness_of, reference_problems
    ),
    "every wrong course is graded wrong": partial(_soundness_of, wrong_course_problems),
    "a reply that a fault broke is rejected in every subtask": faults_are_caught,
    "no prompt gives the answer away": nothing_leaks,
}
"""The checks of a pack with a world, in which the world is graded."""


def checks_of(scenario: Scenario) -> Mapping[str, Callable[[TaskHooks], Soundness]]:
    """Return the checks of a pack with or without a world, by their titles."""
    return WORLD_CHECKS if scenario.environment else CHECKS


def notes_on(hooks: TaskHooks) -> Iterator[str]:
    """Yield a sentence for each property of a sound pack that its author should know, for example a final subtask that is
    the only checkpoint."""
    task = hooks.scenario.task
    yield from _harmless_effects(hooks.scenario)
    yield from _inapplicable_effects(hooks.scenario)
    if len(task.subtasks) > 1 and len(task.stages) == 1 and not hooks.scenario.environment:
        yield (
            "no subtask but the last is a checkpoint: `static` verifies once, at the end, and runs all of it again; "
            "set checkpoint=True on a subtask where it should verify"
        )
    grader = defining_file(hooks.scenario.grade)
    entry = entry_of(hooks.folder, hooks.scenario.variant)
    if grader and grader in code_of(hooks.folder, hooks.scenario, entry.name).asked:
        yield (
            f"the grader stands in {grader.name}, which is part of what is asked: an edit of it makes recorded runs worthless; "
            "keep it in grader.py, and import nothing else from there"
        )
