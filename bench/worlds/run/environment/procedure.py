"""A pack's procedure: the judgments and effects of its work, and their order. It is data for an architecture, which knows no
pack; the architecture alone decides how steps are run, repeated, gated and taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.common.errors import PackError, nearest
from bench.record.moment import Moment
from bench.record.world_events import AGENT
from bench.scenario import Call
from bench.worlds.run.environment.parts import Payload


@dataclass(frozen=True)
class Question:
    """A question to a person before a call that the policy wants approved. `about` is the call's business key."""

    person: str
    about: str
    question: Payload


@dataclass(frozen=True)
class Facts:
    """The facts that an agent knows when a step runs. All of them are JSON, so that they survive a crash.

    read      name -> the result of the call under this name in `Step.reads`: of this step, and of all steps that are done
    decided   step -> the output of its judgment
    results   business key -> the tool's result, for effects that stand
    events    kind -> the payload of its first notice
    """

    read: Mapping[str, Any] = field(default_factory=dict)
    decided: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    events: Mapping[str, Payload] = field(default_factory=dict)


class NotKnown(KeyError):
    """Raised when a step needs a fact that was never read or decided, because an earlier step failed."""


class AsFarAsKnown(dict[str, Any]):
    """Facts after some step failed: a missing name raises NotKnown. `get` and `in` do not raise."""

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
    """One step of a procedure: begin when it can, read, judge, act. Its functions are pure: the same facts give the same calls.
    Each step is done once, however many notices of its event come.

    after       the steps that must be done before it begins
    on          the kind of event whose notice begins it; if it never comes, this step and all steps after it are left out
    starts      the moment before which it does not begin
    until       the last moment at which its effects can begin; after it `otherwise` is done instead
    saga        steps of one saga stand or fall together: if one fails, the compensable effects of all are taken back in reverse
                order, and the remaining effects are not done; "" makes the step a saga of its own
    box         minutes of world time from the step's beginning in which its effects can begin; 0: no limit
    role        the role in which it calls (`Environment.roles`)
    needed      whether it is to be done at all; asked when it could begin
    reads       (facts) -> name -> the call that reads it; made anew each time that the step is decided
    judgment    the subtask that is asked; "" if there is nothing to judge
    documents   (facts) -> what the judgment sees beside the pack's documents; None: the results of `reads` under the names that
                the subtask reads
    effects     (facts) -> the calls that change the world, in order, after the judgment. They stand or fall together, like the
                steps of a saga
    asks        (facts, call) -> who is asked if the policy says `person`; None: the first of the environment's people, about
                the call's business key, with its arguments shown
    otherwise   (facts, why) -> the calls to make instead of the effects; why: "denied", "late" (no answer, or past `until` or
                its `box`), "failed" (a tool refused for good), "rejected" (no output was accepted), "fallen" (another step of
                its saga failed)
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
            raise PackError(f"{at} appears twice in the procedure; rename one")
        for name in step.after:
            if name not in known:
                raise PackError(f"{at} comes after '{name}', which is not a step before it; {nearest(name, known)}")
        if step.on and step.on not in kinds:
            raise PackError(f"{at} is begun by '{step.on}', which is not a kind of event; {nearest(step.on, kinds)}")
        if step.starts is not None and step.until is not None and step.until < step.starts:
            raise PackError(f"{at} may end at {step.until} at last and begins at {step.starts} at first; move one")
        if step.role not in roles:
            raise PackError(f"{at} is done by '{step.role}', which is not a role; {nearest(step.role, roles)}")
        if step.box < 0:
            raise PackError(f"{at} has a box of {step.box} minutes; give it 0 or more")
        known.append(step.name)


def judgments_behind(steps: Iterable[ProcedureStep]) -> dict[str, frozenset[str]]:
    """Return the judgment of each step; for a step without a judgment, the judgments of the steps before it."""
    behind: dict[str, frozenset[str]] = {}
    for step in steps:
        earlier = (behind[name] for name in step.after)
        behind[step.name] = frozenset([step.judgment]) if step.judgment else frozenset().union(*earlier)
    return behind
