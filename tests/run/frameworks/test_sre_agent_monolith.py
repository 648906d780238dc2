"""The monolith after sre-agent: one conversation, documents by tools, the whole answer at its end."""

from __future__ import annotations

import json

from scripted_model import Line, ScriptedModel
from trials import TINY, Fault, calls, events, matrix_of, run_all, stages, with_model

from bench.record.events import Called
from bench.record.tool_calls import ToolCall
from bench.run.experiment.trial import TrialResult
from bench.run.frameworks.sre_agent_monolith import MOST_FAILURES, MOST_TURNS
from bench.run.models.base import Reply
from bench.run.models.document_tools import LIST, READ
from bench.run.models.options import options_in

WHOLE = "gather+total+review"
NOTES = TINY.task.documents["notes.txt"]


def call(tool: str, **arguments: str) -> Reply:
    return Reply("", "tool_calls", tool_calls=(ToolCall("call_1", tool, json.dumps(arguments)),))


def scripted(*lines: Line, faults: tuple[Fault, ...] = ()) -> tuple[TrialResult, ScriptedModel]:
    matrix = matrix_of(plans={"plan": faults} if faults else None, architectures=["sre_agent_monolith"])
    model = ScriptedModel(TINY.reference, {WHOLE: lines})
    [result] = run_all(with_model(matrix, model))
    return result, model


def heard(model: ScriptedModel, request: int) -> str:
    return "\n".join(message.content for message in model.requests[request].messages)


def test_a_document_is_seen_only_once_a_tool_has_read_it_and_stays_in_the_conversation() -> None:
    result, model = scripted(call(LIST), call(READ, name="notes.txt"))
    assert result.record.outcome == "solved"
    assert calls(result) == [(WHOLE, 1, "first"), (WHOLE, 1, "step"), (WHOLE, 1, "step")]
    assert [NOTES in heard(model, request) for request in range(3)] == [False, False, True]
    assert [len(request.messages) for request in model.requests] == [2, 4, 6]
    names = [tool["function"]["name"] for tool in options_in(model.requests[0].options)["tools"]]
    assert names == [LIST, READ]


def test_the_simulated_model_lists_the_documents_reads_each_once_and_answers() -> None:
    [result] = run_all(matrix_of("k8s_oomkill", architectures=["sre_agent_monolith"]))
    assert result.record.outcome == "solved"
    assert len(calls(result)) == 1 + 4 + 1
    assert {cause for _, _, cause in calls(result)} == {"first", "step"}


def test_a_call_that_cannot_be_made_is_told_in_words_and_the_agent_goes_on() -> None:
    wrong = [call(READ, name="notes"), call("rm"), call(READ, name="notes.txt")]
    result, model = scripted(*wrong)
    assert result.record.outcome == "solved"
    messages = [model.requests[-1].messages[place].content for place in (3, 5, 7)]
    assert messages[0] == "There is no document 'notes'; the documents are notes.txt."
    assert messages[1].startswith("There is no tool 'rm'")
    assert messages[2] == NOTES


def test_failures_in_a_row_end_the_conversation_and_a_fresh_agent_begins() -> None:
    result, model = scripted(*[call(READ, name="none")] * MOST_FAILURES)
    assert result.record.outcome == "solved"
    assert [attempt for _, attempt, _ in calls(result)] == [1] * MOST_FAILURES + [2]
    assert model.requests[-1].messages == model.requests[0].messages


def test_a_document_that_is_read_without_end_is_read_so_many_times() -> None:
    result, model = scripted(*[call(READ, name="notes.txt")] * MOST_TURNS)
    assert result.record.outcome == "solved"
    assert len(model.requests) == MOST_TURNS + 1
    assert len(model.requests[-1].messages) == 2


def test_after_a_rejection_a_fresh_agent_is_asked_in_the_same_words() -> None:
    fault: Fault = {"point": "output", "effect": "missing_field", "attempts": [1], "subtask": "total"}
    result, model = scripted(call(READ, name="notes.txt"), faults=(fault,))
    assert calls(result) == [(WHOLE, 1, "first"), (WHOLE, 1, "step"), (WHOLE, 2, "retry")]
    assert model.requests[2].messages == model.requests[0].messages
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}


def test_a_fault_in_a_document_strikes_what_the_tool_returns() -> None:
    fault: Fault = {"point": "input", "effect": "truncated", "attempts": [1], "subtask": "gather"}
    result, model = scripted(call(READ, name="notes.txt"), faults=(fault,))
    returned = model.requests[1].messages[-1].content
    assert returned != NOTES and NOTES.startswith(returned)
    assert events(result, Called)[1].tokens_in < events(scripted(call(READ, name="notes.txt"))[0], Called)[1].tokens_in
