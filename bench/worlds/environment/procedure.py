"""A pack's procedure: which judgments and which effects its work consists of, and what comes after what. It is data for an
architecture, which knows no pack; how the steps are run, repeated, gated and taken back is the architecture's alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.errors import PackError, nearest
from bench.scenario import Call
from bench.worlds.environment.moment import Moment
from bench.worlds.environment.parts import Payload

AGENT, COMPENSATION = "agent", "compensation"
"""The roles of who acts in none that the world declares, and of who takes an effect back."""


@dataclass(frozen=True)
class Question:
    """What a person is asked before a call for which the policy wants one. `about` is its business key."""

    person: str
    about: str
    question: Payload


@dataclass(frozen=True)
class Facts:
    """What an agent knows when a step is at work. All of it is JSON, so that it can be kept over a crash.

    read      name -> what the call under this name in `Step.reads` returned: this step's, and those of all steps that are done
    decided   step -> the output of its judgment
    results   business key -> what the tool returned, of effects that stand
    events    kind -> the payload of its first notice
    """

    read: Mapping[str, Any] = field(default_factory=dict)
    decided: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    events: Mapping[str, Payload] = field(default_factory=dict)


class NotKnown(KeyError):
    """What a step goes by was never read or decided, since a step before it came to nothing."""


class AsFarAsKnown(dict[str, Any]):
    """What is read and decided, where some step came to nothing. `get` and `in` ask without needing it."""

    def __missing__(self, name: str) -> Any:
        raise NotKnown(name)


def no_calls(*_: Any) -> Sequence[Call]:
    return ()


def no_reads(_: Facts) -> Mapping[str, Call]:
    return {}


def always(_: Facts) -> bool:
    return True


@dataclass(frozen=True)
class ProcedureStep:
    """One step: begin when it may, read, judge, act. Its functions are pure functions of the facts: the same facts, the same
    calls. Each step is done once, however many notices of its event come.

    after       the steps that must be done before it begins
    on          the kind of event whose notice begins it; a step whose event never comes is left out, and so is what is after it
    starts      the moment before which it does not begin
    until       the last moment at which its effects may be begun; from then on `otherwise` is done in their place
    saga        the steps of one saga stand or fall together: where one comes to nothing, the compensable effects of all are
                taken back, in reverse, and those that are still to be done are not; "" is one of its own
    box         the minutes of world time that it may take from when it was begun; past them its effects are no longer begun;
                0: any number
    role        in which role it calls (`Environment.roles`)
    needed      whether it is to be done at all; asked when it could begin
    reads       (facts) -> name -> the call that reads it; made anew each time that the step is decided
    judgment    the subtask that is asked; "" where nothing is to be judged
    documents   (facts) -> what the judgment is shown beside the pack's documents; None: what was read, by the names that the
                subtask reads
    effects     (facts) -> the calls that change the world, in their order, once it is judged. They stand or fall together, as
                steps of a saga do
    asks        (facts, call) -> who is asked where the policy says `person`; None: the first of the environment's people, about
                the call's business key, and shown its arguments
    otherwise   (facts, why) -> the calls to make in the effects' place; why: "denied", "late" (no answer, or past `until` or
                its `box`), "failed" (a tool refused for good), "rejected" (no output was accepted), "fallen" (another step of
                its saga)
    """

    name: str
    after: tuple[str, ...] = ()
    on: str = ""
    starts: Moment | None = None
    until: Moment | None = None
    box: int = 0
    role: str = AGENT
    saga: str = ""
    needed: Callable[[Facts], bool] = always
    reads: Callable[[Facts], Mapping[str, Call]] = no_reads
    judgment: str = ""
    documents: Callable[[Facts], Mapping[str, Any]] | None = None
    effects: Callable[[Facts], Sequence[Call]] = no_calls
    asks: Callable[[Facts, Call], Question] | None = None
    otherwise: Callable[[Facts, str], Sequence[Call]] = no_calls


def refuse_procedure(steps: Sequence[ProcedureStep], kinds: Iterable[str], roles: Iterable[str], where: str) -> None:
    """Raise PackError for the first step that could never be done."""
    known: list[str] = []
    kinds, roles = tuple(kinds), (AGENT, *roles)
    for step in steps:
        at = f"{where}: step '{step.name}'"
        if step.name in known:
            raise PackError(f"{at} stands twice in the procedure; rename one")
        for name in step.after:
            if name not in known:
                raise PackError(f"{at} comes after '{name}', which is no step before it; {nearest(name, known)}")
        if step.on and step.on not in kinds:
            raise PackError(f"{at} is begun by '{step.on}', which is no kind of event; {nearest(step.on, kinds)}")
        if step.starts is not None and step.until is not None and step.until < step.starts:
            raise PackError(f"{at} may end at {step.until} at last and begins at {step.starts} at first; move one")
        if step.role not in roles:
            raise PackError(f"{at} is done by '{step.role}', which is no role; {nearest(step.role, roles)}")
        if step.box < 0:
            raise PackError(f"{at} has a box of {step.box} minutes; give it 0 or more")
        known.append(step.name)


def judgments_behind(steps: Iterable[ProcedureStep]) -> dict[str, frozenset[str]]:
    """Step -> its judgment; where it has none, those behind the steps that it comes after."""
    behind: dict[str, frozenset[str]] = {}
    for step in steps:
        earlier = (behind[name] for name in step.after)
        behind[step.name] = frozenset([step.judgment]) if step.judgment else frozenset().union(*earlier)
    return behind
