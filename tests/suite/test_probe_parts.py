"""The model that follows a script, and a pack's world as a stranger's server: what `nox -s probe` rests on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from probe.__main__ import CLEAN, Bound
from probe.equality import Equality, Trial, counted
from probe.report import PAGES, RECORD, page
from probe.script import (
    TRIES,
    Call,
    Exchange,
    chat_reply,
    next_call,
    of_chat,
    of_response,
    placed,
    response_reply,
    streamed_chat,
)
from probe.world import PACKS, ToolServer, WorldCount, keep_in, keeper, kept_worlds, next_proposed, reply_of
from reliability.kept import read

from bench.run.packs.loading import load_pack
from bench.worlds.run.environment import Environment

PAY, TELL = Call("pay", {"cents": 5}), Call("tell", {"who": "Ada"})


def test_the_script_goes_on_after_what_the_conversation_holds() -> None:
    assert next_call([PAY, TELL], []) == PAY
    assert next_call([PAY, TELL], [Exchange(PAY, "paid")]) == TELL
    assert next_call([PAY, TELL], [Exchange(PAY, "paid"), Exchange(TELL, '{"error": false}')]) == "Done."


@pytest.mark.parametrize("answer", [None, "Error: no answer came", "MCP error -32000: Connection closed", "status 503"])
def test_a_call_that_failed_is_asked_for_again_a_bounded_number_of_times(answer: str | None) -> None:
    assert next_call([PAY, TELL], [Exchange(PAY, answer)] * (TRIES - 1)) == PAY
    assert next_call([PAY, TELL], [Exchange(PAY, answer)] * TRIES) == "I give up: pay does not work."


def test_a_call_is_read_from_a_chat_and_from_a_response_as_it_was_written() -> None:
    message = chat_reply(PAY)["choices"][0]["message"]
    answer = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": [{"type": "text", "text": "paid"}]}
    assert of_chat({"messages": [message, answer]}) == [Exchange(PAY, "paid")]
    [item] = response_reply(PAY)["output"]
    assert of_response([item]) == [Exchange(PAY, None)]
    assert of_response([item, {"type": "function_call_output", "call_id": item["call_id"], "output": "paid"}]) == [
        Exchange(PAY, "paid")
    ]


def test_a_streamed_reply_has_the_call_of_the_whole_one_in_a_chunk() -> None:
    reply = chat_reply(PAY)
    chunk, end = [line.removeprefix("data: ") for line in streamed_chat(reply).split("\n\n")[:2]]
    [call] = json.loads(chunk)["choices"][0]["delta"]["tool_calls"]
    assert call == {**reply["choices"][0]["message"]["tool_calls"][0], "index": 0} and end == "[DONE]"


def test_the_path_that_the_user_names_stands_in_the_calls() -> None:
    script = [Call("commit", {"repo": "{path}", "files": ["{path}/a"]})]
    assert placed(script, "Commit /data/new repo.")[0].arguments == {"repo": "/data/new", "files": ["/data/new/a"]}
    assert placed(script, "Commit /data/repo.")[0].arguments["repo"] == "/data/repo"


def lived(environment: Environment, folder: Path, calls: int = 1000) -> list[dict[str, Any]]:
    """Let the model and the tools work until the end, or until so many calls are made. Return the conversation."""
    scenario = load_pack("contract_renewal", PACKS, "case_02")
    (folder / "kept").mkdir(exist_ok=True)
    server = ToolServer(environment, folder / "world.db", partial(keep_in, environment, folder / "kept"))
    listed = server.answer({"method": "tools/list"})["tools"]
    tools = [{"type": "function", "function": {**tool, "parameters": tool["inputSchema"]}} for tool in listed]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Do the work."}]
    for _ in range(calls):
        message = reply_of(next_proposed(scenario, environment, {"messages": messages, "tools": tools}))["choices"][0][
            "message"
        ]
        messages.append(message)
        if not (asked := message.get("tool_calls")):
            break
        function = asked[0]["function"]
        called = {"name": function["name"], "arguments": json.loads(function["arguments"])}
        [part] = server.answer({"method": "tools/call", "params": called})["content"]
        messages.append({"role": "tool", "tool_call_id": asked[0]["id"], "content": part["text"]})
    return messages


def test_a_world_counts_what_a_second_life_made_again_and_owes_what_stood_in_the_first_world(tmp_path: Path) -> None:
    environment = load_pack("contract_renewal", PACKS, "case_02").environment
    assert isinstance(environment, Environment)
    assert lived(environment, tmp_path)[-1]["content"] == "The work is done."
    (tmp_path / "world.db").unlink()
    for _ in range(2):
        lived(environment, tmp_path, calls=4)
    once, twice = kept_worlds(environment, tmp_path / "kept")
    assert once.harms == once.owed == {"doubled": Counter(), "lost": Counter()}
    assert twice.harms["doubled"] == {"open_renewal": 1}
    assert "invoice" in twice.harms["lost"] - twice.owed["lost"]


def test_the_tools_are_a_server_over_stdio(tmp_path: Path) -> None:
    words = [sys.executable, str(PACKS[0].parent / "tools" / "reports" / "probe" / "world.py"), "tools", "contract_renewal", ""]
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "wait", "arguments": {"minutes": 1}}},
        {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "wait", "arguments": {"minutes": "x"}}},
    ]
    environment = load_pack("contract_renewal", PACKS, "").environment
    assert isinstance(environment, Environment)
    (tmp_path / "kept").mkdir()
    with keeper(environment, tmp_path / "kept") as port:
        ended = subprocess.run(
            [*words, str(tmp_path / "world.db"), str(port)],
            input="".join(f"{json.dumps(each)}\n" for each in asked),
            capture_output=True,
            text=True,
            check=True,
        )
    first, waited, refused = map(json.loads, ended.stdout.splitlines())
    assert (first["id"], waited["id"], refused["id"]) == (1, "b", "c")
    assert (waited["result"]["isError"], refused["result"]["isError"]) == (False, True)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["000001.db"]


def trial(probed: Mapping[str, Counter[str]] | None, counted: Mapping[str, Counter[str]]) -> Trial:
    return Trial("bare", "p", "a", "lost", probed, WorldCount(counted, counted))


def test_a_trial_that_two_judges_see_differently_is_counted_and_an_undecided_one_is_not() -> None:
    doubled = {"doubled": Counter({"pay": 2}), "lost": Counter[str]()}
    right = {"doubled": Counter[str](), "lost": Counter[str]()}
    [row] = counted([trial(doubled, doubled), trial(right, doubled), trial(right, right), trial(None, doubled)], boxed=True)
    assert (row.trials, row.damaged, row.with_doubled, row.with_lost) == (3, 2, 2, 0)
    assert (row.doubled, row.lost, row.differ, row.owed_otherwise) == (4, 0, 1, 0)


def test_a_session_gives_each_pair_its_share_of_what_is_left_and_none_when_it_is_over() -> None:
    assert 89 < Bound(12 * (CLEAN + 90) / 2, 12, 2, 1000.0).budget() <= 90
    assert Bound(1000.0, 1, 2, 25.0).budget() == 25.0
    crowded = Bound(CLEAN + 5, 100, 2, 25.0)
    assert [crowded.budget() for _ in range(97)] == [1.0] * 97
    assert Bound(CLEAN / 2, 1, 2, 25.0).budget() == 0


def test_the_page_shows_what_the_record_holds_and_trials_differ_only_of_the_agent_and_pack_that_it_names() -> None:
    pages = [path.read_text(encoding="utf-8") for path in PAGES]
    assert [page(text, RECORD) for text in pages] == pages and all("python -m probe.report" in text for text in pages)
    rows = read(RECORD, Equality)
    assert sum(row.trials for row in rows) >= 500
    assert {(row.agent, row.pack) for row in rows if row.differ} <= {("small_loop, retries", "contract_renewal")}
