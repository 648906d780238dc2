"""A world as a conversation shows it. Each call of a course is looked up among the calls in the conversation; the first call
that is not among them is proposed next.

So each request replays a course from its beginning, as a workflow is replayed from its history. A course whose conversation was
lost begins again; a course whose conversation was kept goes on. Nothing else is known here about what happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from bench.worlds.run.environment import Acted, Arrival, Call, Environment, Moment, PolicyVerdict, World
from bench.worlds.run.environment.world import ToolArguments
from bench.worlds.run.simulated.conversation import Conversation, ToolResult, result_of

MAX_TRIES = 5
"""The most tries of a call that fails for a transient reason, a minute of world time apart."""
TRANSIENT_CODES = ("throttled", "unanswered", "unavailable", "broke", "hung", "wrong_type")
PersonAnswer = Literal["approved", "denied", "late"]


class NotYet(Exception):
    """Raised with the calls that come next."""

    def __init__(self, *calls: Call):
        super().__init__(", ".join(call.tool for call in calls))
        self.calls = calls


class RememberedWorld:
    """The methods of a `bench.worlds.run.environment.World` that a course uses, answered from a conversation. Every method
    raises NotYet.

    It holds a private world with only the effects that the conversation shows, and asks it for the policy's verdict.
    """

    def __init__(self, environment: Environment, conversation: Conversation):
        self.environment, self._conversation = environment, conversation
        self._policy_world = World(environment)
        self.now = environment.begins

    def close(self) -> None:
        self._policy_world.close()

    def call(self, tool: str, arguments: ToolArguments, key: str | None = None, **_: Any) -> Acted:
        """Return the call's result. The key is ignored: the system that makes the call sets it, the model only proposes the
        call."""
        del key
        [acted] = self.call_all([Call(tool, _as_json(arguments))])
        return acted

    def call_all(self, calls: Sequence[Call]) -> list[Acted]:
        """Return the results of calls that can be made together."""
        answers = [self._conversation.next_answer(call) for call in calls]
        if missing := [call for call, answer in zip(calls, answers, strict=True) if answer is None]:
            raise NotYet(*missing)
        return [self._act(call, answer) for call, answer in zip(calls, answers, strict=True) if answer]

    def verdict(self, tool: str, arguments: ToolArguments) -> PolicyVerdict:
        return self._policy_world.verdict(tool, arguments)

    def effect_of(self, call: Call) -> str:
        return self._policy_world.effect_of(call.tool, call.arguments)

    def learn_time(self) -> None:
        self.wait()

    def wait(self, days: int = 0, minutes: int = 0) -> tuple[Arrival, ...]:
        """Let time pass as the conversation shows, and return the notices that came meanwhile."""
        result = self._result_of(Call("wait", {"days": days, "minutes": minutes}))
        content = result.value if isinstance(result.value, dict) else {}
        if result.code or "day" not in content:
            self._pass_to(self.now.after(days, minutes))
            return ()
        self._pass_to(_moment(content))
        return tuple(_arrival(event) for event in content.get("events", ()))

    def wait_until(self, moment: Moment) -> tuple[Arrival, ...]:
        """Let time pass up to this moment, and return the notices that came meanwhile."""
        left = moment.total - self.now.total
        return self.wait(*_duration(left)) if left > 0 else ()

    def next_event(self, after: int = 0, until: Moment | None = None) -> Arrival | None:
        """Return the next notice in the conversation, and advance the time to it; None if there was none until then."""
        arguments: dict[str, int] = {"after": after}
        if until is not None:
            arguments["days"], arguments["minutes"] = _duration(max(0, until.total - self.now.total))
        result = self._result_of(Call("next_event", arguments))
        if not result.code and isinstance(result.value, dict):
            arrival = _arrival(result.value)
            self._pass_to(arrival.at)
            return arrival
        if until is not None:
            self._pass_to(until)
        return None

    def ask(self, kind: str, about: str, question: Mapping[str, Any], key: str | None = None) -> str:
        """Ask a person and wait for the answer, as the tool does."""
        del key
        self.decision(kind, about, question)
        return f"{kind}: {about}"

    def decision(self, kind: str, about: str, question: Mapping[str, Any]) -> PersonAnswer:
        """Return a person's answer in the conversation, and advance the time to it."""
        result = self._result_of(Call("ask_person", {"kind": kind, "about": about, "question": dict(question)}))
        content = result.value if isinstance(result.value, dict) else {}
        if isinstance(event := content.get("event"), dict):
            self._pass_to(_moment(event))
        else:
            self.learn_time()
        answer = content.get("answer")
        return answer if answer in ("approved", "denied") else "late"

    def _act(self, call: Call, answer: ToolResult) -> Acted:
        """Return the outcome of a call from its results in the conversation. A call that failed for a passing reason is tried
        again."""
        tool, tries = self.environment.by_name[call.tool], 1
        while answer.code in TRANSIENT_CODES and tries < MAX_TRIES:
            self.wait(minutes=1)
            answer, tries = self._next_answer(call), tries + 1
        result = None if answer.code else _parse_as(tool.result, answer.value)
        effect = self.effect_of(call)
        if result is None:
            code: Any = answer.code or "unanswered"
            return Acted(call.tool, effect, "failed" if code in TRANSIENT_CODES else "refused", reason=code, code=code)
        if tool.writes:
            self._policy_world.call(call.tool, call.arguments)
        self._pass_to(self.now.after(minutes=tool.minutes))
        return Acted(call.tool, effect, "done", result)

    def _result_of(self, call: Call) -> ToolResult:
        """Return the result of a call of a tool that every world offers."""
        answer = self._next_answer(call)
        for _ in range(MAX_TRIES - 1):
            if answer.code not in TRANSIENT_CODES:
                break
            answer = self._next_answer(call)
        return ToolResult(result_of(answer.value), answer.code)

    def _next_answer(self, call: Call) -> ToolResult:
        """Return the next answer to a call in the conversation. Raises NotYet if there is none."""
        answer = self._conversation.next_answer(call)
        if answer is None:
            raise NotYet(call)
        return answer

    def _pass_to(self, moment: Moment) -> None:
        """Advance the time to this moment, unless it is past."""
        if moment > self.now:
            self.now = moment
            self._policy_world.wait_until(moment)


def _as_json(arguments: ToolArguments) -> Mapping[str, Any]:
    return arguments.model_dump(mode="json") if isinstance(arguments, BaseModel) else dict(arguments)


def _parse_as(form: type[BaseModel], value: Any) -> BaseModel | None:
    """Return a result as this type, with or without the object in which the world's server wraps it; None if it does not
    fit."""
    for candidate in (result_of(value), value):
        with suppress(ValidationError):
            return form.model_validate(candidate)
    return None


def _moment(content: Mapping[str, Any]) -> Moment:
    return Moment(int(content["day"]), int(content.get("minute", 0)))


def _duration(minutes: int) -> tuple[int, int]:
    """Return minutes as days and remaining minutes."""
    return divmod(minutes, 24 * 60)


def _arrival(content: Mapping[str, Any]) -> Arrival:
    """Return an event in the JSON of the world's server as a notice."""
    return Arrival(
        int(content.get("number", 0)),
        _moment(content),
        str(content.get("kind", "")),
        str(content.get("name", "")),
        content.get("payload", {}),
    )
