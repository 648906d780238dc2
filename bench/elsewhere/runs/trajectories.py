"""Trajectories of ATIF, the Agent Trajectory Interchange Format, up to version 1.8."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from bench.common.bounds import Listed
from bench.elsewhere.runs.messages import ImportedMessage, as_text, message_of
from bench.elsewhere.runs.spans import OR_NULL
from bench.elsewhere.runs.steps import OpenCall, RunBuilder, as_shown, ranges_of


class AtifToolCall(BaseModel):
    id: str = Field("", validation_alias="tool_call_id")
    tool: str = Field("tool", validation_alias="function_name")
    arguments: Any = None


class SubagentReference(BaseModel):
    trajectory: str | None = Field(None, validation_alias="trajectory_id")
    path: str | None = Field(None, validation_alias="trajectory_path")


class AtifResult(BaseModel):
    call: str | None = Field(None, validation_alias="source_call_id")
    content: Any = None
    subagents: Annotated[Listed[SubagentReference], OR_NULL] = Field(
        default_factory=list, validation_alias="subagent_trajectory_ref"
    )


class AtifObservation(BaseModel):
    results: Annotated[Listed[AtifResult], OR_NULL] = Field(default_factory=list)


class AtifStep(BaseModel):
    source: str
    message: Any = None
    reasoning_content: Any = None
    tool_calls: Annotated[Listed[AtifToolCall], OR_NULL] = Field(default_factory=list)
    observation: AtifObservation | None = None
    llm_call_count: int | None = None
    is_copied_context: bool | None = None

    @property
    def is_call(self) -> bool:
        """Whether the step is a call of a model, and no copy of an earlier step."""
        return self.source == "agent" and not self.is_copied_context and self.llm_call_count != 0


class AtifAgent(BaseModel):
    tool_definitions: Any = None


class Trajectory(BaseModel):
    """The parts of a trajectory that are read here."""

    id: str | None = Field(None, validation_alias="trajectory_id")
    session: str | None = Field(None, validation_alias="session_id")
    agent: AtifAgent | None = None
    steps: Listed[AtifStep]
    continued: str | None = Field(None, validation_alias="continued_trajectory_ref")
    subagents: Annotated[Listed[Trajectory], OR_NULL] = Field(default_factory=list, validation_alias="subagent_trajectories")


def add_trajectory(trajectory: Trajectory, run: RunBuilder) -> None:
    """Add the steps of a trajectory. The steps of a subagent are added where the subagent was called."""
    run.require_size(*_counts(trajectory))
    _Reader(trajectory, run).read()


def _counts(trajectory: Trajectory) -> tuple[int, int]:
    """Return the number of steps and of tool calls of a trajectory, including its subagents."""
    steps = [step for step in trajectory.steps if step.source == "agent" and not step.is_copied_context]
    counts = [(sum(step.is_call for step in steps), sum(len(step.tool_calls) for step in steps))]
    counts += [_counts(subagent) for subagent in trajectory.subagents]
    return sum(count for count, _ in counts), sum(count for _, count in counts)


class _Reader:
    """Reads the trajectory of one agent. `pieces` are the numbers of the run's pieces in the agent's prompt, `new` has the
    texts that the next prompt adds, and `waiting` and `unnamed` are the trajectories of subagents that are not read yet."""

    def __init__(self, trajectory: Trajectory, run: RunBuilder):
        self.trajectory, self.run = trajectory, run
        self.pieces, self.new = list[int](), list[str]()
        self.waiting = {subagent.id: subagent for subagent in trajectory.subagents if subagent.id}
        self.unnamed = [subagent for subagent in trajectory.subagents if not subagent.id]

    def read(self) -> None:
        """Add all steps of the trajectory, and of its subagents."""
        if self.trajectory.agent and self.trajectory.agent.tool_definitions:
            self.new.append(as_shown("tools", as_text(self.trajectory.agent.tool_definitions)))
        for step in self.trajectory.steps:
            self._read_step(step)
        for subagent in [*self.waiting.values(), *self.unnamed]:
            _Reader(subagent, self.run).read()
        if self.trajectory.continued:
            self.run.left_out[f"continuation of the run, in '{self.trajectory.continued}'"] += 1

    def _read_step(self, step: AtifStep) -> None:
        """Add a step, and the texts that the next prompt adds."""
        calls = [
            OpenCall(call.id, call.tool, "" if call.arguments is None else as_text(call.arguments)) for call in step.tool_calls
        ]
        results = step.observation.results if step.observation else []
        message = message_of({"content": step.message}, self.run.left_out)
        if step.reasoning_content:
            self.run.left_out["part of reasoning, which is no part of a reply"] += 1
        words = ImportedMessage("assistant", message.text, tuple(calls)).words if step.source == "agent" else message.text
        texts = [message_of({"content": result.content}, self.run.left_out).text for result in results]
        _answer(calls, results, texts)
        if step.is_call and words:
            self._add(words, calls)
        elif step.source == "agent" and step.is_copied_context:
            self.run.left_out["step of copied context, which is no call of a model again"] += 1
        elif step.source == "agent":
            self.run.left_out["step of the agent without " + ("words" if step.is_call else "a call of a model")] += 1
            for call in calls:
                self.run.add_unasked_call(call)
        if not step.is_call and words:
            self.new.append(as_shown("assistant" if step.source == "agent" else step.source, words))
        if (step.llm_call_count or 0) > 1:
            self.run.left_out[f"step that stands for {step.llm_call_count} calls of a model, read as one call"] += 1
        for result, text in zip(results, texts, strict=True):
            for subagent in self._subagents(result):
                _Reader(subagent, self.run).read()
            self.new += [as_shown("tool", text)] if text else []

    def _add(self, words: str, calls: Sequence[OpenCall]) -> None:
        """Add a call of the model, and the pieces of its prompt and its reply."""
        prompt_piece = self.run.next_piece
        self.run.add(self.new, ranges_of(self.pieces), words, calls)
        self.pieces += [prompt_piece, prompt_piece + 1]
        self.new = []

    def _subagents(self, result: AtifResult) -> Iterator[Trajectory]:
        """Yield the trajectories of the subagents that a result names."""
        for reference in result.subagents:
            if subagent := self.waiting.pop(reference.trajectory or "", None):
                yield subagent
            else:
                self.run.left_out["trajectory of a subagent that the file does not hold"] += 1


def _answer(calls: Sequence[OpenCall], results: Sequence[AtifResult], texts: Sequence[str]) -> None:
    """Set the results of each tool call. If several calls have the same id, they get its results in turn, and the last call
    gets all further results."""
    calls_by_id = defaultdict[str | None, deque[OpenCall]](deque)
    for call in calls:
        calls_by_id[call.id].append(call)
    if len(calls) == 1:
        calls_by_id[None].append(calls[0])
    results_by_call = defaultdict[int, list[str]](list)
    for result, text in zip(results, texts, strict=True):
        if open_calls := calls_by_id[result.call]:
            results_by_call[id(open_calls[0])].append(text)
            open_calls[0].answered = True
            if len(open_calls) > 1:
                open_calls.popleft()
    for call in calls:
        call.result = "\n".join(filter(None, results_by_call[id(call)]))
