"""A trajectory of ATIF is read up to its newest version: what is no call of a model is none, and no word of it is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from written_traces import acting, read, trajectory

from bench.common.errors import ResultsError
from bench.elsewhere.runs import ImportedCall, read_trace

USER = {"source": "user", "message": "Order 17 arrived broken."}
LOOK, REFUND = acting("get_order", "40 euros", order=17), acting("refund", "refunded", "Refund.", order=17)
DONE = {"source": "agent", "message": "Done."}


def test_copied_context_is_shown_and_is_no_step(tmp_path: Path) -> None:
    copied = [{**step, "is_copied_context": True} for step in (USER, LOOK, REFUND)]
    run = read(tmp_path, trajectory(*copied, {"source": "user", "message": "And order 18?"}, LOOK, DONE))
    assert [[call.tool for call in step.calls] for step in run.steps] == [["get_order"], []]
    assert all(words in run.steps[0].shown for words in ("broken", "get_order(", "40 euros", "Refund.", "refunded", "order 18"))
    assert run.left_out == {"step of copied context, which is no call of a model again": 2}


def test_a_step_without_a_call_of_a_model_is_none_and_its_tools_were_called(tmp_path: Path) -> None:
    dispatched = {**LOOK, "message": "[dispatch]", "llm_call_count": 0}
    run = read(tmp_path, trajectory(USER, dispatched, REFUND, dispatched, DONE))
    assert [[call.tool for call in step.calls] for step in run.steps] == [["get_order", "refund", "get_order"], []]
    assert "[dispatch]" in run.steps[0].shown and "40 euros" in run.steps[0].shown
    assert run.left_out == {"step of the agent without a call of a model": 2}


def test_a_step_of_several_calls_of_a_model_is_counted(tmp_path: Path) -> None:
    run = read(tmp_path, trajectory(USER, {**DONE, "llm_call_count": 3}))
    assert run.left_out == {"step that stands for 3 calls of a model, read as one call": 1}


def test_pictures_are_marks_and_reasoning_is_no_reply(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
    shown = {"source": "user", "message": [{"type": "text", "text": "What is it?"}, picture]}
    run = read(tmp_path, trajectory(shown, {**DONE, "reasoning_content": "SECRET"}))
    assert (run.steps[0].shown, run.steps[0].reply) == ("[user]\nWhat is it?\n[image: a.png]", "Done.")
    assert run.left_out == {
        "part of type 'image', of which the prompt has a mark alone": 1,
        "part of reasoning, which is no part of a reply": 1,
    }


def test_what_a_subagent_did_happened_where_it_was_called(tmp_path: Path) -> None:
    """It sees its own prompt, and its caller sees what it came to."""
    subagent = json.loads(trajectory({"source": "user", "message": "Look it up."}, LOOK, DONE, trajectory_id="sub"))
    delegate = acting("delegate", None)
    delegate["observation"]["results"][0] |= {"content": "It cost 40.", "subagent_trajectory_ref": [{"trajectory_id": "sub"}]}
    run = read(tmp_path, trajectory(USER, delegate, REFUND, subagent_trajectories=[subagent]))
    assert [[call.tool for call in step.calls] for step in run.steps] == [["delegate"], ["get_order"], [], ["refund"]]
    assert "broken" not in run.prompt(3) and "40 euros" in run.prompt(3)
    assert "Look it up." not in run.prompt(4) and "It cost 40." in run.prompt(4) and run.steps[3].before == ((0, 2),)


def test_what_stands_in_other_files_is_counted(tmp_path: Path) -> None:
    result = {"source_call_id": "1", "subagent_trajectory_ref": [{"trajectory_path": "sub.json"}]}
    run = read(tmp_path, trajectory(USER, {**LOOK, "observation": {"results": [result]}}, continued_trajectory_ref="next.json"))
    assert run.left_out == {
        "trajectory of a subagent that the file does not hold": 1,
        "continuation of the run, in 'next.json'": 1,
    }


def test_of_several_trajectories_one_is_named(tmp_path: Path) -> None:
    text = f"{trajectory(USER, LOOK, DONE, trajectory_id='first')}\n{trajectory(USER, DONE, session_id='second')}\n"
    with pytest.raises(ResultsError, match=r"holds 2 trajectories; name one with --trace, such as first, second$"):
        read(tmp_path, text)
    assert len(read(tmp_path, text, trace="f").steps) == 2
    alike = f"[{trajectory(USER, DONE, session_id='s')}, {trajectory(USER, LOOK, DONE, session_id='s')}]"
    with pytest.raises(ResultsError, match=r"such as s#1, s#2$"):
        read(tmp_path, alike)
    assert len(read(tmp_path, alike, trace="s#2").steps) == 2


@pytest.mark.parametrize(
    ("ids", "results", "expected"),
    [
        ("aa", [("a", "1"), ("a", "2")], ["1", "2"]),
        ("ab", [("b", "2"), ("a", "1")], ["1", "2"]),
        ("a", [("a", "1"), ("a", "2")], ["1\n2"]),
        ("a", [(None, "1")], ["1"]),
        ("ab", [(None, "1")], ["", ""]),
    ],
)
def test_each_call_has_its_own_results(ids: str, results: list[tuple[Any, str]], expected: list[str], tmp_path: Path) -> None:
    calls = [{"tool_call_id": id_, "function_name": "f", "arguments": {}} for id_ in ids]
    observed = [{"source_call_id": id_, "content": content} for id_, content in results]
    step = {"source": "agent", "message": "", "tool_calls": calls, "observation": {"results": observed}}
    assert [call.result for call in read(tmp_path, trajectory(step)).steps[0].calls] == expected


@pytest.mark.parametrize("arguments", [{"a": 1}, ["fast"], "text", 5, None])
def test_arguments_can_be_any_json(arguments: Any, tmp_path: Path) -> None:
    step = acting("f", "ok")
    step["tool_calls"][0]["arguments"] = arguments
    text = "" if arguments is None else arguments if isinstance(arguments, str) else json.dumps(arguments)
    assert read(tmp_path, trajectory(step)).steps[0].calls == (ImportedCall("f", text, "ok", reads=False),)


def test_definitions_of_tools_begin_the_prompt(tmp_path: Path) -> None:
    run = read(tmp_path, trajectory(USER, DONE, agent={"name": "a", "version": "1", "tool_definitions": [{"name": "f"}]}))
    assert run.steps[0].shown == '[tools]\n[{"name": "f"}]\n\n[user]\nOrder 17 arrived broken.'


def test_the_published_models_take_the_trajectories_of_these_tests(tmp_path: Path) -> None:
    atif = pytest.importorskip("atif")
    steps = [{"step_id": number, **step} for number, step in enumerate((USER, LOOK, REFUND, DONE), 1)]
    subagent = {**json.loads(trajectory(*steps)), "trajectory_id": "sub"}
    text = trajectory(*steps, subagent_trajectories=[subagent])
    assert len(atif.Trajectory.model_validate_json(text).steps) == 4
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8")
    assert len(read_trace(path).steps) == 6
