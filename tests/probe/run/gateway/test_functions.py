"""The door of functions: what an agent's own process sees of it, and what the gateway does to the calls."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import itertools
import json
import os
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from gates import ScriptedGate
from waiting import wait_until

from bench.probe.points import AnswerAction, CallAction
from bench.probe.run.gateway.damaged import damage
from bench.probe.run.gateway.functions import NO_MESSAGE, FunctionDoor, tool_names
from bench.probe.run.gateway.gate import DoorContext
from bench.probe.run.gateway.loader.agent_door.door import Door
from bench.probe.run.gateway.loader.agent_door.values import from_json, to_json

TOOLS = '''
import asyncio, contextvars, threading, os

class Custom(Exception):
    pass

ERROR = Custom("as it is")
THING = object()
VARIABLE = contextvars.ContextVar("variable", default="")

def plain(a, b=2, *, c=3):
    """Its words."""
    VARIABLE.set("set within")
    return THING

def inner(a):
    return plain(a)

def fails():
    raise ERROR

def place():
    return threading.get_ident()

async def waits(a):
    await asyncio.sleep(0)
    return asyncio.current_task()

def counts(most):
    got = 0
    for number in range(most):
        got += (yield number) or 0
    return got

async def streams(most):
    for number in range(most):
        yield number

def child(a):
    return os.getpid()

class Till:
    def pay(self, amount):
        return amount
'''
ALL = ("plain", "inner", "fails", "place", "waits", "counts", "streams", "child", "Till.pay")


class Numbers:
    """What the gateway's doors share, for a scripted gate."""

    def __init__(self, gate: ScriptedGate):
        self.gate, self._numbers = gate, itertools.count(1)
        self.context = DoorContext(lambda: gate, lambda: next(self._numbers), lambda: 1)


def ran(
    folder: Path,
    script: str,
    gate: ScriptedGate,
    functions: tuple[str, ...],
    words: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> tuple[str, FunctionDoor]:
    """Run a script with an open door, and return what it printed."""
    (folder / "script.py").write_text(script, encoding="utf-8")

    async def run() -> tuple[str, FunctionDoor]:
        async with FunctionDoor(Numbers(gate).context, functions) as door:
            environment = {**os.environ, **(variables or {})}
            environment |= door.variables(environment)
            asked = words or ("script.py",)
            process = await asyncio.create_subprocess_exec(
                sys.executable, *asked, cwd=folder, env=environment, stdout=-1, stderr=asyncio.subprocess.STDOUT
            )
            out, _ = await asyncio.wait_for(process.communicate(), 30)
            await door.end()
            return out.decode(), door

    return asyncio.run(run())


def shown(folder: Path, script: str, gate: ScriptedGate | None = None) -> tuple[Any, ScriptedGate]:
    """Return the JSON that a script prints whose functions are those of `tools`."""
    gate = gate or ScriptedGate()
    (folder / "tools.py").write_text(TOOLS, encoding="utf-8")
    printed, _ = ran(folder, f"import json\nfrom tools import *\n{script}", gate, tuple(f"tools:{name}" for name in ALL))
    return json.loads(printed), gate


def arrivals(gate: ScriptedGate) -> list[tuple[str, Any]]:
    return [(call.tool, call.arguments) for call in gate.calls]


def test_a_function_without_a_fault_gives_the_same_object_on_the_same_thread(tmp_path: Path) -> None:
    seen, gate = shown(
        tmp_path,
        "import inspect, threading\n"
        "here = place() == threading.get_ident()\n"
        "same = [here, plain(1) is THING, plain.__doc__, str(inspect.signature(plain)), VARIABLE.get()]\n"
        "print(json.dumps(same))",
    )
    assert seen == [True, True, "Its words.", "(a, b=2, *, c=3)", "set within"]
    assert arrivals(gate) == [("place", {}), ("plain", {"a": 1})]
    assert gate.course[:3] == [("arrived", 1), ("answered", 1), ("given", 1)]


def test_a_function_raises_the_same_exception(tmp_path: Path) -> None:
    seen, gate = shown(tmp_path, "try: fails()\nexcept Custom as error: print(json.dumps(error is ERROR))")
    assert seen is True
    assert gate.calls[0].failed
    assert gate.calls[0].answer == {"error": "Custom", "text": "as it is"}


def test_a_call_within_a_call_is_a_part_of_it(tmp_path: Path) -> None:
    _, gate = shown(tmp_path, "inner(5); print('0')")
    assert arrivals(gate) == [("inner", {"a": 5})]


def test_a_coroutine_runs_in_the_task_that_awaits_it_while_the_loop_goes_on(tmp_path: Path) -> None:
    seen, gate = shown(
        tmp_path,
        "async def main():\n"
        "    return [await waits(1) is asyncio.current_task(), len(await asyncio.gather(*map(waits, range(5))))]\n"
        "print(json.dumps(asyncio.run(main())))",
    )
    assert seen == [True, 5]
    assert len(gate.calls) == 6


def test_generators_of_both_kinds_yield_what_they_do_and_take_what_is_sent(tmp_path: Path) -> None:
    seen, gate = shown(
        tmp_path,
        "def drive():\n"
        "    numbers = counts(3); got = [next(numbers)]\n"
        "    try:\n"
        "        while True: got.append(numbers.send(10))\n"
        "    except StopIteration as end: return [*got, end.value]\n"
        "async def drain(): return [number async for number in streams(3)]\n"
        "print(json.dumps([drive(), asyncio.run(drain())]))",
    )
    assert seen == [[0, 1, 2, 30], [0, 1, 2]]
    assert [call.answer for call in gate.calls] == [[0, 1, 2, 30], [0, 1, 2]]


def test_a_generator_that_a_function_returns_ends_the_call(tmp_path: Path) -> None:
    script = (
        "import asyncio\ndef numbers(): yield 1; yield 2\n"
        "async def more(): yield 3\n"
        "def pay(amount): return numbers() if amount else more()\n"
        "async def drain(): return [number async for number in pay(0)]\n"
        "print(list(pay(1)), asyncio.run(drain()))"
    )
    gate = ScriptedGate()
    printed, _ = ran(tmp_path, script, gate, ("script:pay",))
    assert printed == "[1, 2] [3]\n"
    assert [call.answer for call in gate.calls] == [[1, 2, None], [3]]


@pytest.mark.parametrize(("taken", "kept"), [("list(count(2))", [0, 1, None]), ("asyncio.run(drain())", [0, 1])])
def test_a_generator_that_is_not_run_yields_what_is_kept(tmp_path: Path, taken: str, kept: list[int]) -> None:
    script = (
        "import asyncio\ndef count(most): print('ran'); yield 7\n"
        "async def stream(most):\n    print('ran')\n    yield 7\n"
        f"async def drain(): return [number async for number in stream(2)]\nprint({taken})"
    )
    gate = ScriptedGate({1: "answer"}, instead=json.dumps({"answered": kept}).encode())
    printed, _ = ran(tmp_path, script, gate, ("script:count", "script:stream"))
    assert printed == "[0, 1]\n"


def test_threads_and_processes_of_a_pool_come_through_the_door(tmp_path: Path) -> None:
    seen, gate = shown(
        tmp_path,
        "import multiprocessing\nfrom concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor\n"
        "if __name__ == '__main__':\n"
        "    with ThreadPoolExecutor(4) as pool: a = len(list(pool.map(place, *[])) or [f.result() for f in "
        "[pool.submit(place) for _ in range(8)]])\n"
        "    b = []\n"
        "    for way in ('fork', 'spawn'):\n"
        "        with ProcessPoolExecutor(1, multiprocessing.get_context(way)) as pool:\n"
        "            b.append(pool.submit(child, way).result() != os.getpid())\n"
        "    print(json.dumps([a, b]))",
    )
    assert seen == [8, [True, True]]
    assert sorted(tool for tool, _ in arrivals(gate)) == ["child"] * 2 + ["place"] * 8


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("error", "give", "ConnectionError"),
        ("pass", "break", "TimeoutError"),
        ("pass", "error", "ConnectionError"),
        ("answer", "give", "kept"),
        ("pass", "stale", "kept"),
        ("pass", "empty", ""),
        ("pass", "garbled", "to\ufffd\x1a\ufffd"),
        ("pass", "silence", "told"),
    ],
)
def test_a_struck_function_gives_what_the_gate_says(
    tmp_path: Path, before: CallAction, after: AnswerAction, outcome: str
) -> None:
    gate = ScriptedGate({1: before}, {1: after}, patience=0.2, instead=b'{"answered": "kept"}')
    script = (
        "def tell():\n    print('ran')\n    return 'told'\n"
        "try: print(repr(tell()))\nexcept Exception as error: print(repr(type(error).__name__))"
    )
    printed, _ = ran(tmp_path, script, gate, ("script:tell",))
    assert printed.splitlines() == ["ran"] * (before == "pass") + [repr(outcome)]
    assert gate.calls[0].failed is (before == "error")


def test_a_coroutine_that_is_cancelled_under_silence_is_told_to_the_gate(tmp_path: Path) -> None:
    seen, gate = shown(
        tmp_path,
        "async def main():\n"
        "    try: await asyncio.wait_for(waits(1), 0.2)\n"
        "    except asyncio.TimeoutError: return 'gave up'\n"
        "print(json.dumps(asyncio.run(main())))",
        ScriptedGate(after={1: "silence"}),
    )
    assert seen == "gave up"
    assert gate.course == [("arrived", 1), ("answered", 1), ("cancelled", 1)]


def test_a_script_is_as_without_the_door_and_what_keeps_its_functions_keeps_wrapped_ones(tmp_path: Path) -> None:
    script = (
        '"""Words."""\nfrom __future__ import annotations\nimport sys, inspect\n'
        "def pay(amount: int) -> int:\n    return amount\n"
        "TABLE = {'pay': pay}\n"
        "if __name__ == '__main__':\n"
        "    TABLE['pay'](amount=3)\n"
        "    print([__doc__, __spec__, __package__, __file__, sys.path[0], sys.argv, inspect.getsource(pay)])"
    )
    gate = ScriptedGate()
    with_door, _ = ran(tmp_path, script, gate, ("script:pay",), ("script.py", "a"))
    without, _ = ran(tmp_path, script, gate, (), ("script.py", "a"))
    assert eval(with_door)[:3] == eval(without)[:3] == ["Words.", None, None]
    assert os.path.realpath(eval(with_door)[3]) == str((tmp_path / "script.py").resolve())
    assert eval(with_door)[4:] == eval(without)[4:]
    assert arrivals(gate) == [("pay", {"amount": 3})]


def test_a_module_that_is_run_by_name_is_met(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "agent.py").write_text("def pay(): print('paid')\npay()", encoding="utf-8")
    gate = ScriptedGate()
    printed, _ = ran(tmp_path, "", gate, ("shop.agent:pay",), ("-m", "shop.agent"))
    assert (printed, arrivals(gate)) == ("paid\n", [("pay", {})])


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.FOUND = __file__", encoding="utf-8")
    printed, door = ran(tmp_path, "print(FOUND)", ScriptedGate(), (), variables={"PYTHONPATH": str(tmp_path / "site")})
    assert printed.strip() == str(tmp_path / "site" / "sitecustomize.py")
    assert "opened it, and executed no tool" in door.why_no_call()


def test_what_cannot_be_wrapped_is_named(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("class Till: pass", encoding="utf-8")
    named = ("shop:refund", "shop:Till", "script:pay")
    _, door = ran(tmp_path, "import shop", ScriptedGate(), named)
    assert sorted(door.unwrappable) == [
        "script.py defines no function pay; name the module that defines it",
        "shop has no refund, which `functions` names",
        "shop:Till is no function but a type; name a function",
    ]


def test_a_function_without_source_is_wrapped_in_its_module(tmp_path: Path) -> None:
    gate = ScriptedGate()
    printed, _ = ran(tmp_path, "import math\nprint(math.sqrt(9))", gate, ("math:sqrt",))
    assert (printed, arrivals(gate)) == ("3.0\n", [("sqrt", {"x": 9})])


def test_a_door_that_no_python_opened_says_so(tmp_path: Path) -> None:
    _, door = ran(tmp_path, "", ScriptedGate(), (), ("-I", "script.py"))
    assert "no Python that the agent started opened it" in door.why_no_call()


def test_who_lacks_the_token_is_refused() -> None:
    gate = ScriptedGate()

    async def knock() -> bytes:
        async with FunctionDoor(Numbers(gate).context, ()) as door:
            port = json.loads(door.variables({})["BENCH_FUNCTION_DOOR"])["port"]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b'{"token": "guessed"}\n{"call": 1, "arrived": "pay", "arguments": {}}\n')
            answer = await reader.read()
            writer.close()
            return answer

    assert asyncio.run(knock()) == b""
    assert not gate.calls
    assert gate.notes == [("function", "a process without the door's token connected; it was refused")]


def told(gate: ScriptedGate, lines: bytes, first: bytes = b"") -> tuple[bytes, FunctionDoor]:
    """Return what a process gets that sends these lines after the door's token, until the door ends the connection, or once
    its own end has been read."""

    async def send() -> tuple[bytes, FunctionDoor]:
        async with FunctionDoor(Numbers(gate).context, ()) as door:
            settings = json.loads(door.variables({})["BENCH_FUNCTION_DOOR"])
            reader, writer = await asyncio.open_connection("127.0.0.1", settings["port"])
            writer.write((first or json.dumps({"token": settings["token"]}).encode() + b"\n") + lines)
            if not first:
                writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            await door.end()
            return answer, door

    return asyncio.run(send())


@pytest.mark.parametrize("line", ['{"token": "again"}', "[1]", "{}", "no JSON", '{"call": "1"}', "[" * 100_000])
def test_a_line_that_is_no_message_ends_its_connection_with_a_notice(line: str) -> None:
    gate = ScriptedGate()
    told(gate, f'{line}\n{{"call": 1, "arrived": "pay", "arguments": {{}}}}\n'.encode())
    assert gate.notes == [("function", NO_MESSAGE)] and not gate.calls


def test_a_process_that_is_killed_in_a_line_is_no_reason_for_a_notice() -> None:
    gate = ScriptedGate()
    _, door = told(gate, b'{"seen": "framework", "what": "a"}\n{"seen": "framework", "wh')
    assert not gate.notes and list(door.facts) == [("framework", "a")]


def test_what_a_process_tells_is_kept_within_bounds() -> None:
    gate = ScriptedGate()
    lines = [{name: f"{number} " + "x" * 11_000} for number in range(1200) for name in ("hello", "refused", "seen")]
    _, door = told(gate, "".join(json.dumps(line) + "\n" for line in [*lines, {"notice": "y" * 20_000}]).encode())
    kept = [*door.unwrappable, *(kind for kind, _ in door.facts), *(text for _, text in gate.notes)]
    assert (len(door.unwrappable), len(door.facts), len(gate.notes)) == (1000, 1000, 1)
    assert {len(text) for text in kept} == {10_000}
    assert len(door.why_no_call()) < 1000 * 10_100


def test_a_first_line_without_an_end_is_refused_once_it_is_too_long_for_a_token() -> None:
    gate = ScriptedGate()
    told(gate, b"", first=b'{"token": "' + b"x" * 1000)
    assert gate.notes == [("function", "a process without the door's token connected; it was refused")]


def test_a_call_costs_less_than_a_millisecond(tmp_path: Path) -> None:
    seen, _ = shown(
        tmp_path,
        "from time import perf_counter\nplace(); times = []\n"
        "for _ in range(200):\n    began = perf_counter(); place(); times.append(perf_counter() - began)\n"
        "print(json.dumps(sorted(times)[20]))",
    )
    assert seen < 0.001


def test_values_come_back_equal_or_are_known_not_to() -> None:
    whole = {
        "a": [1, 2.5, None, True, "ü"],
        3: (1, {2}, frozenset((3,))),
        "d": decimal.Decimal("1.10"),
        "t": datetime.datetime(2026, 11, 29, 9, 0),
        "day": datetime.date(2026, 11, 29),
        "b": b"\x00\xff",
        "inf": float("inf"),
        "$type": "a name",
    }
    text, is_whole = to_json(whole)
    assert is_whole
    assert from_json(json.loads(json.dumps(text))) == whole
    assert to_json(object()) == ({"$type": "builtins.object"}, False)
    nested: list[Any] = []
    for _ in range(10_000):
        nested = [nested]
    assert to_json(nested)[1] is False
    assert to_json("\ud800") == ("\\ud800", False)


def test_a_damaged_value_keeps_its_type() -> None:
    value, _ = to_json({"names": ("ada", "bob"), "cents": 3})
    assert from_json(damage(value, "garbled")) == {"names": ("a\ufffd\x1a\ufffd", "b\ufffd\x1a\ufffd"), "cents": 3}
    assert damage(value, "empty") == {}
    assert from_json(damage(to_json(("ada",))[0], "empty")) == ()
    assert len(json.dumps(damage(value, "too_large"))) > 2**20
    assert damage(7, "garbled") == 7


def test_a_tool_has_the_name_of_its_function_unless_two_are_called_so() -> None:
    assert tool_names(("a:pay", "b.c:refund", "b:Till.pay")) == {
        "a:pay": "pay",
        "b.c:refund": "refund",
        "b:Till.pay": "Till.pay",
    }
    assert tool_names(("a:pay", "b:pay")) == {"a:pay": "a:pay", "b:pay": "b:pay"}


def test_after_its_connection_has_closed_a_process_opens_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        door, replies = Door(server.getsockname()[1], "token"), list[dict[str, Any]]()
        door.tell({"hello": "Python"})
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as lines:
            assert [json.loads(lines.readline()) for _ in range(2)] == [{"token": "token"}, {"hello": "Python"}]
        wait_until(lambda: not door._socket)
        asking = threading.Thread(target=lambda: replies.append(door.ask({"call": 1, "arrived": "pay"})), daemon=True)
        asking.start()
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as lines:
            assert [json.loads(lines.readline()) for _ in range(2)] == [{"token": "token"}, {"call": 1, "arrived": "pay"}]
            connection.sendall(b'{"call": 1, "do": "pass"}\n')
            asking.join(10)
        assert replies == [{"call": 1, "do": "pass"}]
