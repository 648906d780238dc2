"""tau-bench: a list of trials, each a chat in OpenAI's form. tau2-bench: an object with tasks and simulations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import AliasChoices, AliasPath, Field, TypeAdapter

from bench.common.bounds import Many
from bench.common.errors import ResultsError, one_line
from bench.elsewhere.formats.members import Arguments, ChatMessage, ChatRole, ItemId, MemberModel, calls_in_message
from bench.elsewhere.formats.part import RecordedFormat
from bench.elsewhere.trials import AGENT, AskedCall, RecordedRun, RecordedTrial, RecordedTurn, require_unique, trial_of


class TauAction(MemberModel):
    name: str
    arguments: Arguments = Field(default_factory=dict, validation_alias=AliasChoices("kwargs", "arguments"))


class TauMessage(ChatMessage):
    role: ChatRole


class TauTrial(MemberModel):
    task_id: ItemId
    trial: ItemId = "0"
    reward: float
    actions: Many[TauAction] | None = Field(None, validation_alias=AliasPath("info", "task", "actions"))
    success: float | None = Field(None, validation_alias=AliasPath("info", "reward_info", "components", "base_success"))
    state: float | None = Field(None, validation_alias=AliasPath("info", "reward_info", "info", "r_actions"))
    traj: Many[TauMessage]


def tau_run(file_name: str, values: Sequence[TauTrial]) -> RecordedRun:
    """Return the trials of tau-bench. If the file has the parts of a composed reward, the reward itself is not read."""
    return RecordedRun("tau-bench", require_unique(file_name, (_tau_trial(file_name, trial) for trial in values)))


def _tau_trial(file_name: str, trial: TauTrial) -> RecordedTrial:
    """Return a trial of tau-bench in the common form."""
    return trial_of(
        file_name,
        [_tau_turn(message) for message in trial.traj],
        trial.task_id,
        trial.trial,
        solved=(trial.reward if trial.success is None else trial.success) > 1 - 1e-6,
        state=None if trial.state is None else trial.state > 0.5,
        expected=_expected_calls(trial.actions),
    )


def _tau_turn(message: TauMessage) -> RecordedTurn:
    """Return a message of tau-bench in the common form."""
    text = message.content or ""
    if message.role != "tool":
        return RecordedTurn(message.role, text, calls_in_message(message.tool_calls))
    return RecordedTurn("tool", text, answers=message.tool_call_id or "", tool=message.name, failed=text.startswith("Error"))


def _expected_calls(actions: Sequence[TauAction] | None) -> tuple[tuple[str, Any], ...] | None:
    """Return the calls that lead to the right state; None if the file does not name them."""
    return None if actions is None else tuple((action.name, action.arguments) for action in actions)


class Tau2Call(MemberModel):
    id: ItemId
    name: str
    arguments: Arguments
    requestor: Literal["assistant", "user"] = "assistant"


class Tau2Message(MemberModel):
    role: ChatRole
    content: str | None = None
    tool_calls: Many[Tau2Call] | None = None
    id: ItemId | None = None
    requestor: str | None = None
    error: bool | None = None
    asked_tokens: int | None = Field(None, validation_alias=AliasPath("usage", "prompt_tokens"))
    answered_tokens: int = Field(0, validation_alias=AliasPath("usage", "completion_tokens"))
    tool_messages: Many[Tau2Message] | None = None


class Tau2Task(MemberModel):
    id: ItemId
    actions: Many[TauAction] | None = Field(None, validation_alias=AliasPath("evaluation_criteria", "actions"))


class Tau2Simulation(MemberModel):
    id: ItemId
    task_id: ItemId = ""
    trial: ItemId | None = None
    reward: float | None = Field(None, validation_alias=AliasPath("reward_info", "reward"))
    state: bool | None = Field(None, validation_alias=AliasPath("reward_info", "db_check", "db_match"))
    messages: Many[Tau2Message]


class Tau2Run(MemberModel):
    model: str | None = Field(None, validation_alias=AliasPath("info", "agent_info", "llm"))
    tasks: Many[Tau2Task] = ()
    simulations: Many[Tau2Simulation]


def tau2_run(file_name: str, run: Tau2Run) -> RecordedRun:
    """Return the trials of tau2-bench. If a simulation has no trial number, its own id takes the place of the number."""
    tasks = {task.id: task.actions for task in run.tasks}
    ids = Counter(simulation.id for simulation in run.simulations)
    if twice := next((id_ for id_, count in ids.items() if count > 1), None):
        raise ResultsError(f"{file_name}: the simulation {one_line(twice, 60)} stands {ids[twice]} times")
    trials = (
        trial_of(
            file_name,
            [turn for message in simulation.messages for turn in _tau2_turns(message)],
            simulation.task_id or simulation.id,
            simulation.trial if simulation.trial is not None else simulation.id,
            solved=None if simulation.reward is None else simulation.reward > 1 - 1e-6,
            state=simulation.state,
            expected=_expected_calls(tasks.get(simulation.task_id)),
        )
        for simulation in run.simulations
    )
    return RecordedRun("tau2-bench", require_unique(file_name, trials), run.model or "")


def _tau2_turns(message: Tau2Message) -> Iterator[RecordedTurn]:
    """Yield the turns of a message of tau2-bench, whose tool message can contain several answers."""
    if message.role != "tool":
        calls = tuple(AskedCall(call.id, call.name, call.arguments, call.requestor) for call in message.tool_calls or ())
        usage = None if message.asked_tokens is None else (message.asked_tokens, message.answered_tokens)
        yield RecordedTurn(message.role, message.content or "", calls, provider=usage if message.role == AGENT else None)
    for answer in message.tool_messages or ((message,) if message.role == "tool" else ()):
        text = answer.content or ""
        failed = text.startswith("Error") if answer.error is None else answer.error
        yield RecordedTurn("tool", text, answers=answer.id or "", by=answer.requestor, failed=failed)


FORMATS = (
    RecordedFormat("tau-bench", frozenset({"traj", "reward"}), TypeAdapter(Many[TauTrial]), tau_run, each=True),
    RecordedFormat("tau2-bench", frozenset({"simulations"}), TypeAdapter(Tau2Run), tau2_run),
)
