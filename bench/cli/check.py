"""Is a pack sound? Its reference answer is right and its wrong answers are wrong, its verifier catches faults, nothing that a
model can see gives the answer away, keyword rules do not solve it, and every architecture can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bench.architectures.registry import ARCHITECTURES
from bench.experiment.config import Config, SimulatedEntry
from bench.experiment.matrix import build_matrix
from bench.experiment.record import TrialRecord
from bench.experiment.trial import Graders, run_trial
from bench.packs import find_packs, load_pack, variants_of
from bench.runtime.caller import unbounded
from bench.runtime.effects import EFFECTS, Target, dump
from bench.runtime.events import Called
from bench.runtime.loop import run
from bench.runtime.proposal import parts_of
from bench.runtime.verification import Rejected, judge
from bench.scenario import Json, Scenario, Subtask
from bench.seeding import draw_for

STRUCTURAL = ("missing_field", "wrong_type", "truncated", "not_json", "empty", "refusal")
"""Effects on a reply that every verifier must catch, whatever the pack."""

DRAWS = 20
SHORTEST_LEAK = 16
"""Characters. Shorter texts of a reference answer, such as a service's name, may well stand in a prompt."""


@dataclass(frozen=True)
class Verdict:
    """One thing that was checked: `problem` is one line, None where it holds."""

    what: str
    problem: str | None = None


def check_pack(name: str, packs: Sequence[Path]) -> Iterator[tuple[str, Verdict]]:
    """Check a pack in each of its variants (or in the one that is named): (scenario, verdict) as they come.

    Raises PackError where it cannot even be loaded.
    """
    pack, _, variant = name.partition(":")
    found = find_packs(packs)
    variants = [variant] if variant or pack not in found else variants_of(found[pack])
    for one in variants:
        scenario = load_pack(f"{pack}:{one}" if one else pack, packs)
        for check in CHECKS:
            yield scenario.name, check(scenario)
        yield scenario.name, _every_architecture_solves_it(scenario, packs)


def _reference_is_accepted(scenario: Scenario) -> Verdict:
    what = "the reference answer passes every schema and check"
    verdicts = judge(scenario.task.subtasks, scenario.reference, scenario.task.documents, {})
    rejected = [verdict for verdict in verdicts.values() if isinstance(verdict, Rejected)]
    return Verdict(what, f"{rejected[0].subtask}: {rejected[0].detail}" if rejected else None)


def _reference_is_right(scenario: Scenario) -> Verdict:
    grade = scenario.grade_outputs(scenario.reference)
    return Verdict("the reference answer is graded correct", None if grade.correct else grade.note or "it is not")


def _wrong_are_wrong(scenario: Scenario) -> Verdict:
    what = f"{len(scenario.wrong)} wrong answers are graded wrong"
    if not scenario.wrong:
        return Verdict(what, "there is none in reference/wrong; a grader is only known to be careful by what it refuses")
    for wrong in scenario.wrong:
        if scenario.grade_outputs({**scenario.reference, **wrong.outputs}).correct:
            return Verdict(what, f"'{wrong.name}' is graded correct, though {wrong.why}")
    return Verdict(what)


def _faults_are_caught(scenario: Scenario) -> Verdict:
    what = f"{', '.join(STRUCTURAL)}: each is caught in every subtask's reply"
    for subtask in scenario.task.subtasks:
        for effect in STRUCTURAL:
            if any(_slips_through(scenario, subtask, effect, number) for number in range(DRAWS)):
                return Verdict(what, f"{effect} in the reply to '{subtask.name}' passed as a valid output")
    return Verdict(what)


def _slips_through(scenario: Scenario, subtask: Subtask, effect: str, number: int) -> bool:
    strike, value = EFFECTS[effect].strike, scenario.reference[subtask.name]
    draw = draw_for("check", scenario.name, subtask.name, effect, number)
    text = strike(Target(dump(value), value, subtask.output), draw) if strike else None
    if text is None:
        return True
    values = {name: part.value for name, part in parts_of(text, "stop", [subtask]).items()}
    return not isinstance(judge([subtask], values, scenario.task.documents, {})[subtask.name], Rejected)


def _nothing_leaks(scenario: Scenario) -> Verdict:
    what = "no prompt gives the answer away"
    prompts = {f"the prompt of '{one.name}'": one.instructions for one in scenario.task.subtasks}
    documents = {f"the document '{name}'": text for name, text in scenario.task.documents.items()}
    for secret in scenario.secrets:
        for where, text in {**prompts, **documents}.items():
            if secret.lower() in text.lower():
                return Verdict(what, f"{where} says '{secret}'")
    for leaf in _texts_in(list(scenario.reference.values())):
        for where, text in prompts.items():
            if len(leaf) >= SHORTEST_LEAK and leaf.lower() in text.lower():
                return Verdict(what, f"{where} says '{leaf}', which stands in the reference answer")
    return Verdict(what)


def _texts_in(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(item)


def _baseline_fails(scenario: Scenario) -> Verdict:
    what = "keyword rules alone do not solve it"
    try:
        grade = scenario.grade_outputs(scenario.baseline(scenario.task.documents))
    except (ValidationError, KeyError) as error:
        return Verdict(what, f"the baseline's answer does not fit the schemas: {str(error).splitlines()[0]}")
    if grade.correct:
        return Verdict(what, "the baseline is graded correct: the pack is too easy to tell anything")
    return Verdict(f"{what} (they score {grade.score:.2f})")


def _every_architecture_solves_it(scenario: Scenario, packs: Sequence[Path]) -> Verdict:
    what = "with a model that knows the reference, every architecture solves it, without a retry"
    for record in run(_with_reference(scenario, packs)):
        if record.outcome != "solved":
            return Verdict(what, f"{record.architecture}: {record.outcome} {record.reason}".rstrip())
        if any(isinstance(event, Called) and event.cause != "first" for event in record.events):
            return Verdict(
                what, f"{record.architecture} asked again: a check, `sufficient` or `finds` objects to the reference"
            )
    return Verdict(what)


async def _with_reference(scenario: Scenario, packs: Sequence[Path]) -> list[TrialRecord]:
    config = Config(
        name="check",
        scenarios=(scenario.name,),
        architectures=tuple(ARCHITECTURES),
        models=("reference",),
        repetitions=1,
        seed=0,
        model={"reference": SimulatedEntry(kind="simulated", wrapping=False)},
    )
    matrix, graders = build_matrix(config, packs, code_digest=""), Graders()
    return [(await run_trial(spec, matrix, unbounded, graders)).record for spec in matrix.specs]


CHECKS: tuple[Callable[[Scenario], Verdict], ...] = (
    _reference_is_accepted,
    _reference_is_right,
    _wrong_are_wrong,
    _faults_are_caught,
    _nothing_leaks,
    _baseline_fails,
)
