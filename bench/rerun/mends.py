"""The five parts of an agent that a rerun can mend, that is, replace by a sound part. The proposer is mended at the model, and
the other parts in the agent.

proposer   returns the right output that the pack declares
verifier   checks every proposal against its schema, the policy and the pack's rules
commit     makes every effect under a key, and only on the row versions on which the effect was decided
signal     reports every rejection with its reason
pattern    has the remedies of the pattern's author

A mended part replaces the agent's own part from an event of the trial on. So a weakness in the agent's code is mended in the
same way as a config setting. The pattern is mended from the beginning, because its stored state cannot be replaced later.

A mended part is always code of this suite. An architecture of another package is never loaded again as its own mend: its
pattern cannot be mended, and its boundary remains the boundary that the architecture made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Literal

from bench.record.form import BARE, Form
from bench.record.messages import Timing
from bench.rerun.mended_parts import (
    BOUNDARY,
    CODE_OUTSIDE,
    FOREIGN_CODE,
    IGNORES_REASONS,
    LACKS_METHODS,
    NO_REMEDIED_FORM,
    NO_STRUCK_OUTPUT,
    MendedPart,
)
from bench.run.architectures.part import Architecture, ArchitecturePart
from bench.run.architectures.registry import load_architecture
from bench.run.experiment.arm import ResolvedArm
from bench.run.models.base import Model, Reply, Request, Sleep
from bench.run.models.simulated import SimulatedModel, SimulatedSettings
from bench.run.trial.decoding import Extracted
from bench.run.trial.faults import OpenReceipt
from bench.run.trial.proposal import Proposal
from bench.run.trial.reading import read
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Scenario, Subtask, Task
from bench.worlds.run.environment import Acted
from bench.worlds.run.environment.world import ToolArguments
from bench.worlds.run.patterns.boundary import Boundary
from bench.worlds.run.runtime.actions import WorldActions

ReplySource = Literal["recorded", "transplanted", "simulated", "right"]
"""The source of a reply: recorded for this state of the world, recorded for another state, made by a simulated model, or made
by the mended proposer."""
CHANGED_OUTPUT = "it is not what was answered: a value in it has come from elsewhere"
"""The reason with which the mended verifier rejects an output."""
CONTENT_POINTS = ("input", "output")
SOUND_FORM = Form(strength="business_rule", commit="compare_and_swap", signal="typed")


@dataclass(frozen=True)
class MendingStart:
    """The place at which mending starts: this many events, and this many requests to the model, stay as they were."""

    events: int = 0
    requests: int = 0


@dataclass(frozen=True)
class RerunAgent:
    """The agent that is run again.

    work              the architecture
    boundary          makes the architecture's boundary, which `remedied` uses too
    remedied          the architecture with its author's remedies and the same boundary; None if there is no such form
    why_no_remedied   why there is no such form
    """

    work: Architecture
    boundary: Callable[[Workbench], Boundary]
    remedied: Architecture | None = None
    why_no_remedied: str = NO_REMEDIED_FORM

    @staticmethod
    def of(arm: ResolvedArm) -> RerunAgent:
        """Return the agent of an arm, with its remedied form if the suite has one."""
        entry = arm.architecture
        form = entry.form or BARE

        def boundary(workbench: Workbench) -> Boundary:
            """Return the boundary with the arm's settings."""
            return Boundary.of(workbench, form)

        if not is_ours(entry.part):
            return RerunAgent(entry.work, boundary, why_no_remedied=FOREIGN_CODE)
        remedied = load_architecture(entry.part, entry.parallel, with_remedies(form)) if entry.part.forms else None
        return RerunAgent(entry.work, boundary, remedied)


def is_ours(part: ArchitecturePart) -> bool:
    """Return whether the function of an architecture is part of this suite."""
    return part.path.partition(".")[0] == "bench"


def with_remedies(form: Form) -> Form:
    """Return the form of a pattern with the remedies by its author. The boundary stays as it is."""
    strength = form.strength or ("business_rule" if form.remedies else "schema")
    commit = form.commit or ("compare_and_swap" if form.remedies else "plain")
    return replace(form, remedies=True, strength=strength, commit=commit, signal=form.tells)


@dataclass
class MendedAgent:
    """An agent in one trial. Its `parts` are mended from `start` on.

    model        the model that the agent asks
    in_world     whether the task has a world
    not_mended   part of the agent's boundary -> why the part cannot be exchanged
    """

    agent: RerunAgent
    parts: frozenset[MendedPart]
    start: MendingStart
    model: WatchedModel
    in_world: bool
    not_mended: dict[MendedPart, str] = field(default_factory=lambda: dict.fromkeys(("verifier", "signal"), CODE_OUTSIDE))
    _has_boundary: bool = False
    _undo_counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def work(self, task: Task, workbench: Workbench) -> None:
        """Run the agent on the task, with its parts mended."""
        if self.in_world:
            world: WorldActions = workbench.world
            if world.life == 1:
                world.exchanged = lambda boundary: self._exchange(boundary, workbench)
                if "commit" in self.parts:
                    self._make_under_keys(world)
        else:
            start = self.start.requests
            mended = MendedTask(workbench, self.parts, lambda: self.model.asked >= start, self.model.timing != "simulated")
            self.not_mended = mended.not_mended
        remedied = self.agent.remedied if "pattern" in self.parts else None
        await (remedied or self.agent.work)(task, workbench)

    def _exchange(self, boundary: Boundary, workbench: Workbench) -> Boundary:
        """Return the boundary with the mended parts in place of the agent's own parts."""
        own_boundary = self.agent.boundary(workbench) if "pattern" in self.parts else boundary
        sound_boundary, world = Boundary.of(workbench, SOUND_FORM), workbench.world
        if not self._has_boundary:
            self._has_boundary, self.not_mended = True, {}
        self.not_mended |= {
            part: LACKS_METHODS for part in BOUNDARY if not _fits(own_boundary, part, getattr(sound_boundary, part))
        }
        mended: dict[str, Any] = {
            part: _SwitchedPart(getattr(own_boundary, part), getattr(sound_boundary, part), lambda: self._has_begun(world))
            for part in BOUNDARY
            if part in self.parts and part not in self.not_mended
        }
        return replace(own_boundary, **mended) if mended else own_boundary

    def _has_begun(self, world: WorldActions) -> bool:
        """Return whether the trial has reached the start of mending."""
        return len(world.acting.log.events) >= self.start.events

    def _make_under_keys(self, world: WorldActions) -> None:
        """Replace the function that calls tools: each effect of an agent without a boundary gets an idempotency key. After an
        undo the effect gets a new key."""
        act = world.act

        async def keyed(tool: str, arguments: ToolArguments, key: str | None = None, **options: Any) -> Acted:
            """Call a tool, with a key if the agent gave none."""
            effect, declared_tool = world.effect_of(tool, arguments), world.tools.get(tool)
            needs_key = key is None and effect and declared_tool and declared_tool.writes
            if needs_key and not self._has_boundary and self._has_begun(world):
                key = f"{tool}: {effect} {self._undo_counts[tool, effect]}"
            acted = await act(tool, arguments, key, **options)
            if acted.outcome == "done" and tool in world.undoes:
                self._undo_counts.update([(tool, effect), (world.undoes[tool], effect)])
            return acted

        world.act = keyed  # type: ignore[method-assign]  # only this trial's; an outside agent calls tools through it


def _fits(boundary: Any, part: MendedPart, mended: object) -> bool:
    """Return whether a mended part can replace this part of a boundary: it must have all methods of the present part."""
    own_part = getattr(boundary, part, None)
    public = {name for name in dir(own_part) if not name.startswith("_")}
    return is_dataclass(boundary) and own_part is not None and public <= set(dir(mended))


class MendedTask:
    """The workbench of a task without a world. Its verifier and signal are mended if they are among `parts`, as soon as
    `has_begun` returns true.

    The mended verifier knows which outputs a fault has changed, and rejects them. The mended signal gives the reason of the
    last rejection to each further attempt. So if only the verifier is mended, a repair does not get the reason; if both are
    mended, it does.

    hears_reasons   whether the model's replies can depend on a reason
    not_mended      part -> why the part cannot be mended; known at the end of the trial
    """

    def __init__(
        self, workbench: Workbench, parts: Collection[MendedPart], has_begun: Callable[[], bool], hears_reasons: bool
    ) -> None:
        self._workbench, self._parts, self._has_begun = workbench, parts, has_begun
        self._verify, self._checkpoint = workbench.verify, workbench.checkpoint
        self._propose, self._commit_unverified = workbench.propose, workbench.commit_unverified
        self._unverified: dict[str, Proposal] = {}
        self._rejected: dict[str, Rejected] = {}
        self._hears_reasons = hears_reasons
        self.not_mended: dict[MendedPart, str] = {"verifier": CODE_OUTSIDE, "signal": CODE_OUTSIDE}
        hooks: Mapping[str, Any] = {
            "verify": self.verify,
            "checkpoint": self.checkpoint,
            "propose": self.propose,
            "commit_unverified": self.commit_unverified,
        }
        for name, hook in hooks.items():  # replaces the methods of this trial's workbench alone
            setattr(workbench, name, hook)

    async def propose(self, *subtasks: Subtask, repair: Rejected | None = None, **options: Any) -> Proposal:
        """Ask for a proposal, with the reason of the last rejection if the signal is mended."""
        if self._hears_reasons:
            self.not_mended.pop("signal", None)
        elif "signal" in self.not_mended:
            self.not_mended["signal"] = IGNORES_REASONS
        if "signal" in self._parts and repair is None and self._has_begun():
            repair = next((self._rejected[subtask.name] for subtask in subtasks if subtask.name in self._rejected), None)
        return await self._propose(*subtasks, repair=repair, **options)

    def commit_unverified(self, proposal: Proposal) -> None:
        """Commit a proposal, and remember it for the checkpoint."""
        self._unverified.update(dict.fromkeys(proposal.names, proposal))
        self._commit_unverified(proposal)

    def verify(self, proposal: Proposal, sufficiency: bool = False) -> Rejected | None:
        """Verify a proposal with the agent's verifier, then with the mended verifier."""
        rejected = self._verify(proposal, sufficiency)
        return self._remember_rejection(
            rejected or self._reject_changed_output(dict.fromkeys(proposal.names, proposal)), proposal.names
        )

    def checkpoint(self, stage: Sequence[Subtask]) -> Rejected | None:
        """Verify the proposals of a stage with the agent's verifier, then with the mended verifier."""
        rejected, names = self._checkpoint(stage), [subtask.name for subtask in stage]
        unverified = {name: self._unverified[name] for name in names if name in self._unverified}
        return self._remember_rejection(rejected or self._reject_changed_output(unverified), names)

    def _reject_changed_output(self, accepted: Mapping[str, Proposal]) -> Rejected | None:
        """Return the mended verifier's rejection of the first accepted output that a fault has changed; None if there is none,
        or if the verifier is not mended. Note in `not_mended` whether the verifier could be mended in this trial."""
        if self.not_mended.get("verifier") == CODE_OUTSIDE:
            self.not_mended["verifier"] = NO_STRUCK_OUTPUT
        for name, proposal in accepted.items():
            if any(_changed_content(receipt, name) for receipt in proposal.receipts):
                self.not_mended.pop("verifier", None)
                if "verifier" in self._parts and self._has_begun():
                    self._workbench.reject(proposal, CHANGED_OUTPUT)
                    return Rejected(name, "check", CHANGED_OUTPUT, proposal.text)
        return None

    def _remember_rejection(self, rejected: Rejected | None, names: Collection[str]) -> Rejected | None:
        """Remember a rejection for the further attempts at its subtask, and forget the rejections of accepted outputs."""
        for name in names:
            self._rejected.pop(name, None)
        if rejected:
            self._rejected[rejected.subtask] = rejected
        return rejected


def _changed_content(receipt: OpenReceipt, subtask: str) -> bool:
    """Return whether a fault has changed the content of this subtask."""
    return receipt.is_delivered and receipt.due.subtask == subtask and receipt.due.fault.point in CONTENT_POINTS


class _SwitchedPart:
    """A part of a boundary that is replaced by another part at the start of mending."""

    def __init__(self, original: Any, mended: Any, has_begun: Callable[[], bool]):
        self._original, self._mended, self._has_begun = original, mended, has_begun

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mended if self._has_begun() else self._original, name)


class WatchedModel:
    """A model that counts its replies by their source. From a given request on, a right proposer answers instead.

    mended_from   the number of requests that the model answers first; None: all requests
    asked         the number of requests so far
    first_wrong   the number of requests before the first reply that differs from the declared right reply; None if no reply
    differs
    """

    timing: Timing

    def __init__(self, model: Model, scenario: Scenario, mended_from: int | None):
        self.name, self.timing, self.endpoint, self.concurrency = model.name, model.timing, model.endpoint, model.concurrency
        self._model, self._scenario, self._mended_from = model, scenario, mended_from
        self._right = SimulatedModel(model.name, SimulatedSettings(wrapping=False), {scenario.key: scenario})
        self.asked = 0
        self.sources: Counter[ReplySource] = Counter()
        self.first_wrong: int | None = None

    @property
    def parameters(self) -> dict[str, object]:
        return self._model.parameters

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """Answer a request with the model or with the right proposer, and count the source of the reply."""
        number, self.asked = self.asked, self.asked + 1
        if self._mended_from is not None and number >= self._mended_from:
            self.sources["right"] += 1
            return await self._right.reply(request, sleep)
        reply = await self._model.reply(request, sleep)
        self.sources[self._source(request)] += 1
        if self.first_wrong is None and self._is_wrong(request, reply):
            self.first_wrong = number
        return reply

    async def prepare(self, patient: bool = True) -> None:
        await self._model.prepare(patient)

    async def close(self) -> None:
        await self._model.close()

    def _source(self, request: Request) -> ReplySource:
        """Return the source of the model's reply: "recorded" by the model, or by a bank in this state at a first attempt;
        "transplanted" from the bank's other replies; or "simulated"."""
        if not isinstance(self._model, SimulatedModel):
            return "recorded"
        bank, context = self._model.bank, request.context
        if bank is None:
            return "simulated"
        place = (self._scenario.name, "".join(context.subtasks), context.instance, context.state)
        return "recorded" if context.attempt == 1 and bank.knows(place) else "transplanted"

    def _is_wrong(self, request: Request, reply: Reply) -> bool:
        """Return whether a reply to a judgment differs from the right reply. Notes in free text never differ, nor do replies to
        an outside agent."""
        context, environment = request.context, self._scenario.environment
        right_outputs = {**self._scenario.reference, **context.references}
        subtasks = [subtask for subtask in self._scenario.task.subtasks if subtask.name in context.subtasks]
        if reply.tool_calls or not subtasks or any(name not in right_outputs for name in context.subtasks):
            return False
        answer = read(reply.text, reply.finish, subtasks, context.answer_format)
        if not isinstance(answer, Extracted):
            return True
        notes = environment.notes if environment else ()
        outputs: Any = answer.value if len(context.subtasks) > 1 else {subtasks[0].name: answer.value}
        return any(
            _without_notes(outputs.get(name), notes) != _without_notes(right_outputs[name], notes) for name in context.subtasks
        )


def _without_notes(output: Any, notes: tuple[str, ...]) -> Any:
    """Return an output without its free-text notes."""
    return {name: value for name, value in output.items() if name not in notes} if isinstance(output, dict) else output
