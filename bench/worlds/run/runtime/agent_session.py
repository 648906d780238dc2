"""A session at the measuring endpoint for an agent in a separate process, in a world. The process can be killed and started
again: the session continues, and knows which process asked what."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.trial.call import Received
from bench.run.trial.causes import CallPurpose
from bench.run.trial.endpoint_session import EndpointSession, RequestKey
from bench.run.trial.proposal import Proposal
from bench.run.trial.reply import ReplyPart
from bench.run.trial.trial import Trial
from bench.run.trial.verification import Unreadable
from bench.scenario import Output, Subtask
from bench.worlds.run.runtime.agent_causes import AgentCauses


class Words(Output):
    text: str


AGENT = Subtask("agent", "Whatever the agent itself asks for.", reads=(), output=Words)
REPLY_WITHOUT_TOOLS = {"text": "There is nothing that I can do without tools."}
"""The answer of a simulated model to an agent that offers it no tools."""


TextAndCalls = tuple[str, tuple[tuple[str, str], ...]]
"""A text, and the name and arguments of each tool call."""


@dataclass(frozen=True)
class _AnsweredCall:
    """A call that was answered, with the number of the agent's process and the messages of the call."""

    life: int
    messages: tuple[Message, ...]
    purpose: CallPurpose
    received: Received


class AgentSession(EndpointSession):
    """The session of an agent in a separate process. `life` is the number of the agent's process, from 1."""

    def __init__(self, trial: Trial):
        super().__init__((AGENT,), trial, limit="none", judged=False)
        self._agent_causes = AgentCauses(trial.causes, trial.log)
        self._answered_calls: list[_AnsweredCall] = []
        self.life = 1

    def drop_process_state(self, event: int) -> None:
        """Note that the process, or one of several, died at this event. Its failed requests are forgotten."""
        self._trial.drop_process_state(event)
        self.life += 1
        self._failed.clear()
        self._failure = None
        self._agent_causes.note_crash(event)

    def output(self) -> Proposal | None:
        """Return the last reply with the calls that led to it; None if no call was answered.

        A call of an earlier life counts if a call of the last life still carried its reply among its messages.
        """
        if not self._answered_calls:
            return None
        last = self._answered_calls[-1]
        still_present = {
            written
            for answered in self._answered_calls
            if answered.life == self.life
            for written in _replies_in(answered.messages)
        }
        contributing = [
            answered for answered in self._answered_calls if answered is last or self._contributes(answered, still_present)
        ]
        text = last.received.text
        return Proposal(
            subtasks=(AGENT,),
            attempt=last.purpose.context.attempt,
            calls=tuple(answered.received.call for answered in contributing),
            text=text,
            parts={AGENT.name: ReplyPart(text, Unreadable("not_json", "nobody asked for a form", is_prose=True))},
            made_from=(),
            receipts=tuple(receipt for answered in contributing for receipt in answered.received.receipts),
        )

    def attempts(self) -> dict[str, int]:
        return {AGENT.name: self._agent_causes.attempts}

    def _contributes(self, answered: _AnsweredCall, still_present: set[TextAndCalls]) -> bool:
        """Return whether a call leads to the last reply: it is the first sample of its question in the last life, or its reply
        is still present in a call of the last life."""
        is_first_sample = answered.life == self.life and answered.purpose.context.sample == 1
        return is_first_sample or _comparable(answered.received.text, answered.received.tool_calls) in still_present

    def _new_purpose(self, question: RequestKey, subtasks: tuple[Subtask, ...]) -> CallPurpose:
        del subtasks
        return self._agent_causes.next_purpose(AGENT.name, question)

    def _add_turn(self, question: RequestKey, subtasks: tuple[Subtask, ...], purpose: CallPurpose, received: Received) -> None:
        super()._add_turn(question, subtasks, purpose, received)
        self._answered_calls.append(_AnsweredCall(self.life, question[1], purpose, received))

    def _note_lost(self, purpose: CallPurpose, event: int) -> None:
        del purpose
        self._agent_causes.note_loss(event)

    def _note_recovered(self, event: int) -> None:
        self._agent_causes.note_late_reply(event)


def session_of(trial: Trial) -> AgentSession:
    """Return the session of a trial's agent in a separate process."""
    trial.add(AGENT, REPLY_WITHOUT_TOOLS)
    trial.injection.any_text_subtasks.add(AGENT.name)
    return AgentSession(trial)


def _replies_in(messages: tuple[Message, ...]) -> set[TextAndCalls]:
    """Return the texts and tool calls of the assistant in a conversation."""
    return {_comparable(message.content, message.tool_calls) for message in messages if message.role == "assistant"}


def _comparable(text: str, calls: Iterable[ToolCall]) -> TextAndCalls:
    """Return the part of a reply that stays the same if a framework rewrites the reply: ids and the spacing of JSON are left
    out."""
    return text.strip(), tuple((call.name, _canonical_json(call.arguments)) for call in calls)


def _canonical_json(arguments: str) -> str:
    """Return JSON in a canonical form; a text that is no JSON is returned unchanged."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
