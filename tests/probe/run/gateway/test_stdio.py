"""What passes between an agent and a real server over stdio, untouched and struck."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from gates import ScriptedGate
from stdio_agents import Client, client_of, gateway_of
from waiting import wait_until

from bench.probe.points import JSON_RPC, AnswerAction, CallAction
from bench.probe.run.gateway.gate import LiveCall
from bench.wire.json_rpc import MAX_MESSAGE_BYTES

CALL = b'{"method":"tools/call" , "params":{"name":"pay","arguments":{"amount":5}},"jsonrpc":"2.0","id":%s}\n'
EVERY_KIND = [
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}\r\n',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n',
    CALL % b"1",
    CALL % b'"1"',
    CALL % b"1.5",
    CALL % b"null",
    CALL % b'{"a": [1, "\xe2\x82\xac"]}',
    b'{"jsonrpc":"2.0","id":9,"result":{"action":"accept"}}\n',
    b'{"jsonrpc":"2.0","id":9,"error":{"code":-1,"message":"no"}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}\n',
    b'{"jsonrpc":"2.0","id":10,"method":"sampling/createMessage","params":{}}\n',
    b'{"jsonrpc":"2.0","id":11,"method":"tools/list"}\n',
    b'[{"jsonrpc":"2.0","id":2,"method":"ping"}, {"jsonrpc":"2.0","method":"x"},5]\n',
    b"[" + CALL.strip() % b"3" + b" , " + CALL.strip() % b"4" + b"]\r\n",
    b"\n",
    b"  \t \r\n",
    b"\xff\xfe\x00 no text\n",
    b"{not json\r\n",
    b'{"text": "' + b"x" * (2 * 10**6) + b'"}\n',
    b"y" * (MAX_MESSAGE_BYTES + 5) + b"\n",
    CALL % b"5",
    b"no end of line",
]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def test_every_kind_of_message_passes_as_it_came_both_ways(tmp_path: Path) -> None:
    gate, sent = ScriptedGate(), b"".join(EVERY_KIND)

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway, client_of(gateway) as client:
            answers = asyncio.create_task(client.stdout.read())
            await client.write(sent)
            client.stdin.close()
            assert await answers == (tmp_path / "written").read_bytes()
            assert await client.process.wait() == 0
            assert await client.stderr.read() == b"the server's own words\n"

    run(work())
    assert (tmp_path / "received").read_bytes() == sent
    assert len(gate.calls) == 8
    assert sorted(gate.course) == sorted((step, number) for step in ("arrived", "answered", "given") for number in range(1, 9))
    assert all("no message of MCP" in what for _, what in gate.notes)


def test_a_call_is_brought_before_the_gate_with_what_it_asks_and_what_was_answered(tmp_path: Path) -> None:
    gate = ScriptedGate()

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            await client.message()

    run(work())
    (call,) = gate.calls
    assert (call.door, call.kind, call.tool, call.arguments, call.wire_id) == ("shop", "mcp_stdio", "pay", {"amount": 5}, "1")
    assert not call.failed
    assert call.answer["structuredContent"] == {"times": 1, "who": ["a", "b"]}  # type: ignore[index,call-overload]
    assert gate.course == [("arrived", 1), ("answered", 1), ("given", 1)]


@pytest.mark.parametrize("form", ["", JSON_RPC])
def test_an_error_reaches_the_agent_and_no_server(tmp_path: Path, form: str) -> None:
    gate = ScriptedGate({1: "error"}, form=form)
    answers = answers_to(tmp_path, gate, 2)
    assert ("error" in answers[0]) == (form == JSON_RPC)
    assert answers[0].get("result", {}).get("isError", form == JSON_RPC)
    assert answers[1]["result"]["structuredContent"]["times"] == 1
    assert ("given", 1) in gate.course


def test_a_call_delivered_twice_is_done_twice_and_answered_once(tmp_path: Path) -> None:
    gate = ScriptedGate({1: "twice"})
    answers = answers_to(tmp_path, gate, 2)
    assert [answer["result"]["structuredContent"]["times"] for answer in answers] == [1, 3]
    received = [json.loads(line) for line in (tmp_path / "received").read_bytes().splitlines()]
    assert len({message["id"] for message in received}) == 3
    assert received[0]["params"] == received[1]["params"]


def test_a_dropped_call_reaches_no_server_and_gets_no_answer(tmp_path: Path) -> None:
    gate = ScriptedGate({1: "drop"})
    assert [answer["id"] for answer in answers_to(tmp_path, gate, 2, answered=1)] == [2]
    assert (tmp_path / "paid").read_bytes().count(b"\n") == 1


def test_a_dropped_answer_is_not_given(tmp_path: Path) -> None:
    gate = ScriptedGate(after={1: "drop"})
    assert [answer["id"] for answer in answers_to(tmp_path, gate, 2, answered=1)] == [2]
    assert (tmp_path / "paid").read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("after", ["stale", "empty", "garbled", "too_large"])
def test_a_changed_answer_is_given_in_place_of_the_servers(tmp_path: Path, after: AnswerAction) -> None:
    instead = b'{"jsonrpc": "2.0", "id": 77, "result": {"content": [{"type": "text", "text": "paid 0"}]}}'
    gate = ScriptedGate(after={1: after}, instead=instead)
    (answer,) = answers_to(tmp_path, gate, 1)
    content = answer["result"]["content"]
    assert answer["id"] == 1
    assert {
        "stale": content and content[0]["text"] == "paid 0",
        "empty": not content,
        "garbled": content and content[0]["text"].startswith("pai") and "€1" not in content[0]["text"],
        "too_large": content and len(content[0]["text"]) > 10**5,
    }[after]
    assert gate.course[-1] == ("given", 1)


def test_a_broken_connection_looks_like_a_server_that_died(tmp_path: Path) -> None:
    gate = ScriptedGate(after={1: "break"})

    async def work() -> None:
        async with gateway_of(tmp_path, gate, "linger") as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            assert await client.line() == b""
            assert await client.process.wait() == 1
            with pytest.raises(ConnectionError):
                while True:
                    await client.call(2, "pay", amount=5)
            assert not runs(tmp_path)

    run(work())
    assert gate.course == [("arrived", 1), ("answered", 1)]
    assert (tmp_path / "paid").read_bytes().count(b"\n") == 1


CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}


@pytest.mark.parametrize(("after", "gives"), [("silence", False), ("late", True)])
@pytest.mark.parametrize("how", ["cancelled", "asked_again", "disconnected"])
def test_silence_lasts_until_the_agent_ends_its_wait(tmp_path: Path, after: AnswerAction, gives: bool, how: str) -> None:
    class Watched(ScriptedGate):
        async def answer(self, call: LiveCall, answer: bytes) -> AnswerAction:
            came.set()
            return await super().answer(call, answer)

    gate, came = Watched(after={1: after}, patience=30), asyncio.Event()

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            await came.wait()
            assert await client.hears_nothing()
            if how == "cancelled":
                await client.send(CANCEL)
            elif how == "asked_again":
                await client.call(2, "pay", amount=5)
            else:
                client.stdin.close()
            heard = [await client.message()] if gives and how != "disconnected" else []
            if how == "cancelled":
                assert await client.message() == CANCEL  # the server sends it back, and nothing else
            elif how == "asked_again":
                heard.append(await client.message())
            else:
                assert await client.line() == b""
            assert [message["id"] for message in heard] == [1] * (gives and how != "disconnected") + [2] * (
                how == "asked_again"
            )

    run(work())
    assert (how, 1) in gate.course
    assert (("given", 1) in gate.course) == (gives and how != "disconnected")


@pytest.mark.parametrize("how", ["cancelled", "asked_again", "disconnected", "killed"])
def test_a_call_in_flight_is_done_after_its_client_has_left_and_another_one_was_answered(tmp_path: Path, how: str) -> None:
    gate = ScriptedGate(before={1: "hold"}, patience=30)

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            assert await client.hears_nothing()
            if how == "cancelled":
                await client.send(CANCEL)
                assert await client.message() == CANCEL  # the server, which does not know the call, sends it back
            elif how == "disconnected":
                client.stdin.close()
            elif how == "killed":
                client.process.kill()
            if how in ("cancelled", "asked_again"):
                await client.call(2, "pay", amount=5 if how == "asked_again" else 6)
                assert (await client.message())["id"] == 2
            else:  # the next life of the agent
                await gateway.end_servers(busy=False)
                async with client_of(gateway) as later:
                    await later.call(2, "pay", amount=6)
                    assert (await later.message())["id"] == 2

    run(work())
    gone = "disconnected" if how == "killed" else how
    assert {("arrived", 1), (gone, 1), ("delivered", 1)} <= {*gate.course} and ("given", 1) not in gate.course
    assert [json.loads(line) for line in (tmp_path / "paid").read_bytes().splitlines()][1:] == [{"amount": 5}]
    assert json.loads(gate.answers[1])["id"] == 1 and not gate.calls[0].failed
    assert not runs(tmp_path)


def test_parallel_calls_go_on_while_one_is_in_flight_and_its_client_waits_for_ever(tmp_path: Path) -> None:
    gate = ScriptedGate(before={1: "hold"}, patience=0.5)

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway, client_of(gateway) as client:
            for number in range(1, 8):
                await client.call(number, "pay", amount=number)
            assert [(await client.message())["id"] for _ in range(7)] == [*range(2, 8), 1]

    run(work())
    assert [each for each in gate.course if each[1] == 1][1:] == [
        ("waits_longer", 1),
        ("passes", 1),
        ("answered", 1),
        ("given", 1),
    ]


def test_another_request_does_not_end_the_silence(tmp_path: Path) -> None:
    gate = ScriptedGate(after={1: "silence"})

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            await client.call(2, "pay", amount=6)
            assert (await client.message())["id"] == 2
            assert not {("asked_again", 1), ("cancelled", 1), ("disconnected", 1)} & set(gate.course)

    run(work())


@pytest.mark.parametrize("after", ["silence", "late"])
def test_an_agent_that_waits_longer_gets_its_answer(tmp_path: Path, after: AnswerAction) -> None:
    gate = ScriptedGate(after={1: after}, patience=0.2)
    (answer,) = answers_to(tmp_path, gate, 1)
    assert answer["result"]["structuredContent"]["times"] == 1
    assert gate.course == [("arrived", 1), ("answered", 1), ("waits_longer", 1), ("given", 1)]


def test_a_struck_member_leaves_its_batch_and_the_others_stay(tmp_path: Path) -> None:
    gate = ScriptedGate({1: "error"}, {2: "drop"})

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway, client_of(gateway) as client:
            await client.write(b"[" + b",".join(CALL.strip() % b"%d" % number for number in (1, 2, 3)) + b"]\n")
            first, second = await client.message(), await client.message()
            assert (first["id"], first["result"]["isError"]) == (1, True)
            assert [answer["id"] for answer in second] == [3]

    run(work())


def test_answers_out_of_order_find_their_calls(tmp_path: Path) -> None:
    gate = ScriptedGate()
    answers = answers_to(tmp_path, gate, 2, mode="swap")
    assert [answer["id"] for answer in answers] == [2, 1]
    assert gate.calls[0].answer["structuredContent"]["times"] == 1  # type: ignore[index,call-overload]


def test_what_comes_behind_a_call_at_the_gate_passes_it_after_a_moment(tmp_path: Path) -> None:
    class Waiting(ScriptedGate):
        async def arrive(self, call: LiveCall) -> CallAction:
            before = await super().arrive(call)
            await released.wait()
            return before

    gate, released = Waiting(), asyncio.Event()

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            await client.send({"jsonrpc": "2.0", "id": 5, "result": {}})
            assert (await client.message())["id"] == 5
            released.set()
            assert (await client.message())["id"] == 1

    run(work())


def test_a_server_that_dies_is_noticed_and_its_agent_sees_it(tmp_path: Path) -> None:
    gate = ScriptedGate()

    async def work() -> None:
        async with gateway_of(tmp_path, gate, "die") as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            assert await client.line() == b""
            assert await client.process.wait() == 3

    run(work())
    assert gate.notes == [("shop", "it ended with exit code 3 and left 1 call unanswered: the server's own words")]


def test_a_server_that_hangs_is_noticed_when_it_is_ended(tmp_path: Path) -> None:
    gate = ScriptedGate(patience=0.1)

    async def work() -> None:
        async with gateway_of(tmp_path, gate, "hang") as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            assert await client.hears_nothing(0.4)
            await gateway.end_servers()

    run(work())
    assert gate.notes == [("shop", "it did not answer call 1 (pay) within 0.1 s, until it was ended")]


def test_a_server_that_floods_waits_for_its_reader(tmp_path: Path) -> None:
    gate = ScriptedGate()

    async def work() -> None:
        async with gateway_of(tmp_path, gate, "flood") as gateway, client_of(gateway) as client:
            client.stdout._transport.pause_reading()  # type: ignore[attr-defined]
            before = memory()
            await client.call(1, "pay", amount=5)
            await asyncio.to_thread(wait_until, (tmp_path / "pid").is_file)
            await asyncio.sleep(0.5)
            assert memory() - before < 16 * 2**20
            await gateway.end_servers()
            assert not runs(tmp_path)

    run(work())
    assert len(gate.notes) == 1


def test_tools_that_change_midway_are_noticed(tmp_path: Path) -> None:
    gate = ScriptedGate()

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway, client_of(gateway) as client:
            for number in range(3):
                await client.send({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
                await client.message()
                if number == 1:
                    assert not gate.notes
                    (tmp_path / "changed").touch()
            await client.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            await client.message()
            await client.call(9, "look")
            await client.message()

    run(work())
    assert gate.notes == [("shop", "its tool 'pay' has changed"), ("shop", "it says that its tools have changed")]
    assert gate.calls[0].reads is True


def answers_to(folder: Path, gate: ScriptedGate, calls: int, answered: int | None = None, mode: str = "") -> list[Any]:
    """Return the answers to so many payments. If `answered` is less, nothing comes after them."""
    answers: list[Any] = []

    async def work() -> None:
        async with gateway_of(folder, gate, mode) as gateway, client_of(gateway) as client:
            for number in range(calls):
                await client.call(number + 1, "pay", amount=number)
                if mode != "swap" and (answered is None or number + 1 > calls - answered):
                    answers.append(await client.message())
            while len(answers) < (calls if answered is None else answered):
                answers.append(await client.message())
            assert await hears_no_more(client)

    run(work())
    return answers


async def hears_no_more(client: Client) -> bool:
    return await client.hears_nothing(0.1)


def runs(folder: Path) -> bool:
    """Return whether a process of the server still runs."""
    return any(Path(f"/proc/{pid}").exists() for pid in (folder / "pid").read_text(encoding="utf-8").split())


def memory() -> int:
    """Return the bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * 4096
