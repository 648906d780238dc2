"""The monolith whose whole task stands in the system message: same words, other places, and the same recovery."""

from __future__ import annotations

from trials import TINY, calls, scripted

from bench.run.trial.prompt import NOTHING_TO_READ, prompt_of
from bench.run.trial.verification import Rejected

ALL = "gather+total+review"
BROKEN = {**TINY.reference, "total": {"unit": "apples"}}


def test_the_system_message_has_the_task_and_the_user_message_what_is_read() -> None:
    _, model = scripted("monolithic_system_message")
    _, other = scripted("monolithic")
    [system, user] = model.requests[0].messages
    assert system.role == "system" and user.role == "user"
    for subtask in TINY.task.subtasks:
        assert subtask.instructions in system.content and subtask.instructions not in user.content
    assert user.content == "\n\n".join(f"# Input: {name}\n{text}" for name, text in TINY.task.documents.items())
    pieces = [
        sorted("\n\n".join(message.content for message in request.messages).split())
        for request in (model.requests + other.requests)
    ]
    assert pieces[0] == pieces[1]


def test_a_rejection_means_the_whole_call_again_with_the_same_two_messages() -> None:
    result, model = scripted("monolithic_system_message", {ALL: [BROKEN]}, repair="reason+reply")
    assert result.record.outcome == "solved"
    assert calls(result) == [(ALL, 1, "first"), (ALL, 2, "retry")]
    assert model.requests[0].messages == model.requests[1].messages


def test_why_an_answer_was_rejected_stands_in_the_user_message() -> None:
    prompt = prompt_of(TINY.task, TINY.task.subtasks, {}, Rejected("total", "schema", "no total"), "reason")
    system, user = prompt.messages_with_task_in_system
    assert "no total" in user.content and "no total" not in system.content
    untold = prompt_of(TINY.task, TINY.task.subtasks, {}, None, "reason")
    assert untold.messages_with_task_in_system[1].content == NOTHING_TO_READ
