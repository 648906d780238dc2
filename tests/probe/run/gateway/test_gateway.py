"""The gateway between an agent and its servers: what it starts, hands over, replaces, and leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from gates import ScriptedGate
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from stdio_agents import STDIO_SERVER, client_of, gateway_of, launched, subject_of
from waiting import wait_until

from bench.common.errors import ConfigError
from bench.probe.points import AnswerAction
from bench.probe.run.gateway.agent_config import read_config
from bench.probe.run.gateway.gate import LiveCall
from bench.probe.run.gateway.gateway import Gateway
from bench.probe.run.gateway.subject import McpConfig, McpServer, ModelSource, ProbedAgent, Service, Subject

PROBE = """
import asyncio, sys
from pathlib import Path
from gates import ScriptedGate
from stdio_agents import client_of, gateway_of

async def work():
    async with gateway_of(Path(sys.argv[1]), ScriptedGate(), "linger") as gateway, client_of(gateway) as client:
        await client.call(1, "pay", amount=5)
        await client.message()
        print(client.process.pid, flush=True)
        await asyncio.sleep(60)

asyncio.run(work())
"""


SDK_SERVER = """
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server, paid = MCPServer("shop"), []

@server.tool(annotations=ToolAnnotations(readOnlyHint=False))
def pay(amount: int) -> int:
    paid.append(amount)
    return len(paid)

server.run("stdio")
"""


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def test_the_agents_copy_is_private_and_removed_and_the_original_untouched(tmp_path: Path) -> None:
    async def work() -> None:
        async with gateway_of(tmp_path, ScriptedGate()) as gateway:
            before = (tmp_path / "mcp.json").read_bytes()
            words, variables = gateway.launch(
                ("agent", f"--config={tmp_path / 'mcp.json'}", str(tmp_path / "mcp.json")), {"A": "b"}
            )
            copy = Path(words[2])
            assert words[1] == f"--config={copy}"
            assert mode_of(copy) == 0o600
            assert mode_of(tmp_path / "private") == 0o700
            assert (tmp_path / "mcp.json").read_bytes() == before
            assert variables == {"A": "b"}
        assert list((tmp_path / "private").iterdir()) == []

    run(work())


@pytest.mark.parametrize("word", ["mcp.json", "./mcp.json", "--mcp=mcp.json", "../{folder}/mcp.json", "{folder_path}/mcp.json"])
def test_each_way_to_name_the_config_in_a_command_names_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.chdir(tmp_path)

    async def work() -> None:
        async with gateway_of(Path(), ScriptedGate()) as gateway:
            config = word.format(folder=tmp_path.name, folder_path=tmp_path)
            words, _ = gateway.launch(("agent", config, "a/mcp.json"), {})
            assert words[1].rpartition("=")[2] == str(tmp_path / "private" / "mcp-0.json")
            assert words[2] == "a/mcp.json"

    run(work())


def test_a_variable_hands_the_copy_over_and_others_hold_the_addresses_of_services_and_model(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"far": {"url": "http://127.0.0.1:${PORT}/mcp"}}}', encoding="utf-8")
    agent = ProbedAgent(("agent",), ("agent",), tmp_path, {"PORT": "9"})
    service, model = Service("bank", "BANK_URL", "http://127.0.0.1:8"), ModelSource(("A", "B"), url="http://127.0.0.1:7/v1")
    subject = Subject("test", agent, (read_config(config, "MCP_CONFIG"),), (service,), model)

    async def work() -> None:
        async with Gateway(subject, {}, tmp_path / "private") as gateway:
            _, variables = gateway.launch(("agent",), {"BANK_URL": "old", "C": "c"})
            copy = json.loads(text_of(Path(variables["MCP_CONFIG"])))
            root = "/".join(variables["A"].split("/")[:3])
            tokens = {url.split("/")[3] for url in (variables["A"], variables["BANK_URL"], copy["mcpServers"]["far"]["url"])}
            assert len(tokens) == 3 and all(len(token) == 32 for token in tokens)
            assert variables["BANK_URL"].startswith(root)
            assert copy["mcpServers"]["far"]["url"].startswith(root)
            assert variables["A"] == variables["B"]
            assert variables["A"].endswith("/v1")
            assert variables["C"] == "c"

    run(work())


def test_a_gateway_that_cannot_open_its_doors_leaves_nothing(tmp_path: Path) -> None:
    twice = (Service("bank", "A", "http://127.0.0.1:8"), Service("bank", "B", "http://127.0.0.1:8"))
    subject = Subject("test", ProbedAgent(("agent",), ("agent",), tmp_path), services=twice)

    async def work() -> None:
        with pytest.raises(ConfigError, match="two doors have this name"):
            async with Gateway(subject, {}, tmp_path / "private"):
                pass
        assert list((tmp_path / "private").iterdir()) == []

    run(work())


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (("agent", "--", "npx", "-y", "a b", "end"), 2, 1),
        (("agent", "npx -y 'a b'", "end"), 1, 1),
        (("agent", "--server=npx -y 'a b'", "end"), 1, 1),
    ],
)
def test_a_servers_command_in_the_agents_command_is_replaced(
    tmp_path: Path, words: tuple[str, ...], before: int, after: int
) -> None:
    agent = ProbedAgent(words, words, tmp_path)
    subject = Subject("test", agent, (McpConfig(Path(), (McpServer("shop", ("npx", "-y", "a b")),)),))

    async def work() -> None:
        async with Gateway(subject, {}, tmp_path / "private") as gateway:
            changed, _ = gateway.launch(words, {})
            assert (changed[:before], changed[-after:]) == (words[:before], words[-after:])
            (*_, line) = changed[before:-after]
            shim = changed[before:-after] if line == "a b" else tuple(shlex.split(line.removeprefix("--server=")))
            assert line.startswith("--server=") == words[1].startswith("--server=")
            assert shim[-5:] == (str(tmp_path / "private"), "0/shop", "npx", "-y", "a b")
            with pytest.raises(ConfigError, match="does not hold the command of the server 'shop'"):
                gateway.launch(("agent", "it's"), {})

    run(work())


def test_a_client_and_a_server_of_the_mcp_sdk_meet_through_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SDK_SERVER, encoding="utf-8")
    subject = subject_of(tmp_path / "mcp.json", {"command": sys.executable, "args": [str(tmp_path / "server.py")]})
    gate = ScriptedGate({2: "error", 3: "twice"})

    async def work() -> None:
        async with Gateway(subject, {}, tmp_path / "private") as gateway:
            gateway.gate = gate
            _, entry = launched(gateway, "shop")
            parameters = StdioServerParameters(command=entry["command"], args=entry["args"])
            async with stdio_client(parameters) as (reads, writes), ClientSession(reads, writes) as session:
                await session.initialize()
                await session.list_tools()
                paid = [(await session.call_tool("pay", {"amount": 5})).structured_content for _ in range(4)]
                assert paid == [{"result": 1}, None, {"result": 2}, {"result": 4}]

    run(work())
    assert gate.course[-3:] == [("arrived", 4), ("answered", 4), ("given", 4)]
    assert not gate.notes
    assert [call.reads for call in gate.calls] == [False] * 4


def test_a_command_that_hands_no_config_over_is_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with gateway_of(tmp_path, ScriptedGate()) as gateway:
            with pytest.raises(ConfigError, match="no word of the agent's command hands it over"):
                gateway.launch(("agent",), {})

    run(work())


def test_a_gate_that_kills_at_a_call_ends_the_servers_and_the_call_is_not_given(tmp_path: Path) -> None:
    class Killing(ScriptedGate):
        async def answer(self, call: LiveCall, answer: bytes) -> AnswerAction:
            await super().answer(call, answer)
            await self.gateway.end_servers()
            assert not alive(tmp_path)
            self.course.append(("killed", call.number))
            return "drop"

        gateway: Gateway

    gate = Killing()

    async def work() -> None:
        async with gateway_of(tmp_path, gate, "linger") as gateway:
            gate.gateway = gateway
            async with client_of(gateway) as client:
                await client.call(1, "pay", amount=5)
                await client.call(2, "pay", amount=5)
                assert await client.line() == b""
            gateway.gate, gateway.process_number = ScriptedGate(), 2
            async with client_of(gateway) as client:
                await client.call(3, "pay", amount=5)
                assert (await client.message())["id"] == 3
                assert [call.life for call in gateway.gate.calls] == [2]

    run(work())
    assert ("killed", 1) in gate.course
    assert ("given", 1) not in gate.course


@pytest.mark.parametrize("error", [ZeroDivisionError, OSError])
def test_what_the_gate_raises_comes_to_who_ends_the_servers(tmp_path: Path, error: type[Exception]) -> None:
    class Failing(ScriptedGate):
        async def note_given(self, call: LiveCall) -> None:
            raise error(call.number)

    async def work() -> None:
        async with gateway_of(tmp_path, Failing()) as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            await client.message()
            assert await client.line() == b""
            await client.process.wait()
            with pytest.raises(error):
                await gateway.end_servers()

    run(work())


def test_stores_are_replaced_in_words_variables_and_folders_of_agent_and_server(tmp_path: Path) -> None:
    replaces = {str(tmp_path / "own.db"): str(tmp_path / "copy.db"), "canary-7": "other", "rel.db": "/copies/rel.db"}

    async def work() -> None:
        async with gateway_of(tmp_path, ScriptedGate(), "shout", replaces) as gateway, client_of(gateway) as client:
            words = (
                str(tmp_path / "mcp.json"),
                f"sqlite:///{tmp_path}/own.db?x=1",
                f"{tmp_path}/own.db-2",
                "./rel.db",
                "a/rel.db",
                "sqlite:///rel.db",
            )
            changed, variables = gateway.launch(words, {"DB": f"file:{tmp_path}/own.db"})
            assert changed[1:] == (
                f"sqlite:///{tmp_path}/copy.db?x=1",
                f"{tmp_path}/own.db-2",
                "/copies/rel.db",
                "a/rel.db",
                "sqlite:////copies/rel.db",
            )
            assert variables["DB"] == f"file:{tmp_path}/copy.db"
            await client.call(1, "pay", amount=5)
            await client.message()
            client.stdin.close()
            words_of_server = (await client.stderr.read()).decode()
            assert "'SECRET': 'other'" in words_of_server

    run(work())


def test_a_server_gets_the_variables_that_its_agent_gave_it_and_no_others(tmp_path: Path) -> None:
    async def work() -> None:
        async with gateway_of(tmp_path, ScriptedGate(), "shout") as gateway, client_of(gateway) as client:
            client.stdin.close()
            shown = (await client.stderr.read()).decode().splitlines()[1]
            assert set(eval(shown)) - {"LC_CTYPE"} == {"PATH", "SECRET"}

    run(work())


def test_no_secret_of_a_config_is_told_to_the_gate(tmp_path: Path) -> None:
    gate = ScriptedGate()

    async def work() -> None:
        for mode in ("", "die", "hang"):
            async with gateway_of(tmp_path, gate, mode) as gateway, client_of(gateway) as client:
                await client.write(b"canary-7 is no message\n")
                await client.call(1, "pay", amount=5)
                await client.line()
        subject = subject_of(tmp_path / "other.json", {"command": "/none/canary-7", "env": {"SECRET": "canary-7"}})
        gateway = Gateway(subject, {}, tmp_path / "private")
        gateway.gate = gate
        async with gateway, client_of(gateway) as client:
            assert await client.process.wait() == 127
            assert b"cannot be started (No such file or directory)" in await client.stderr.read()

    run(work())
    assert gate.notes
    assert "canary" not in repr(gate.notes)


def argument_lists() -> list[bytes]:
    """The arguments of all processes, as any user of this machine sees them."""
    return [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]


def test_no_list_of_arguments_holds_what_opens_a_door(tmp_path: Path) -> None:
    bank = Service("bank", "BANK_URL", "http://127.0.0.1:8")

    async def work() -> None:
        async with gateway_of(tmp_path, ScriptedGate()) as gateway:
            gateway._addresses["BANK_URL"] = gateway._listener.add_service(bank)
            words, variables = gateway.launch(("agent", str(tmp_path / "mcp.json")), {})
            async with client_of(gateway) as client:
                await client.call(1, "pay", amount=5)
                await client.message()
                running = argument_lists()
            token = variables["BANK_URL"].split("/")[3]
            assert any(b"shim.py" in line and str(tmp_path).encode() in line for line in running)
            assert not any(token.encode() in line for line in running) and token not in " ".join(words)

    run(work())


def test_a_stranger_at_the_socket_is_refused(tmp_path: Path) -> None:
    gate = ScriptedGate()

    async def work() -> None:
        async with gateway_of(tmp_path, gate) as gateway:
            _, entry = launched(gateway, "shop")
            words = [word if word != "0/shop" else "0/none" for word in entry["args"]]
            shim = await asyncio.create_subprocess_exec(entry["command"], *words, stdin=subprocess.DEVNULL)
            assert await shim.wait() == 1

    run(work())
    assert not (tmp_path / "pid").exists()
    assert len(gate.notes) == 1


def test_a_server_that_ignores_the_end_of_its_input_ends_with_its_agent(tmp_path: Path) -> None:
    async def work() -> None:
        async with gateway_of(tmp_path, ScriptedGate(), "linger") as gateway:
            async with client_of(gateway) as client:
                await client.call(1, "pay", amount=5)
                await client.message()
            await asyncio.to_thread(wait_until, lambda: not alive(tmp_path))

    run(work())


def test_a_probe_that_is_killed_leaves_no_server(tmp_path: Path) -> None:
    support = STDIO_SERVER.parent
    environment = {**os.environ, "PYTHONPATH": f"{support}:{support.parent.parent}"}
    with subprocess.Popen([sys.executable, "-c", PROBE, str(tmp_path)], stdout=subprocess.PIPE, env=environment) as probe:
        assert probe.stdout
        shim = int(probe.stdout.readline())
        assert alive(tmp_path) and runs(shim)
        probe.send_signal(signal.SIGKILL)
        probe.wait()
    wait_until(lambda: not alive(tmp_path) and not runs(shim))


def test_a_folder_with_blanks_other_alphabets_and_a_long_name_works(tmp_path: Path) -> None:
    folder = tmp_path / "мой магазин – a b" / ("long" * 30)
    folder.mkdir(parents=True)

    async def work() -> None:
        async with gateway_of(folder, ScriptedGate()) as gateway, client_of(gateway) as client:
            await client.call(1, "pay", amount=5)
            assert (await client.message())["result"]["structuredContent"]["times"] == 1

    run(work())


def alive(folder: Path) -> bool:
    """Return whether a process of the server still runs."""
    return any(map(runs, map(int, (folder / "pid").read_text(encoding="utf-8").split())))


def runs(pid: int) -> bool:
    """Return whether a process runs; a dead one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_stores_name_at_the_end_of_a_sentence_is_replaced_and_a_longer_name_is_not(tmp_path: Path) -> None:
    subject = Subject("bank", ProbedAgent(("agent",), ("agent",), tmp_path))
    gateway = Gateway(subject, {"/data/bank.db": "/copy/bank.db"}, tmp_path / "gateway")
    words, _ = gateway.with_copies(["Pay by /data/bank.db.", "/data/bank.db.old", "/data/bank.db-wal", "/data/bank.db"], {})
    assert words == ("Pay by /copy/bank.db.", "/data/bank.db.old", "/data/bank.db-wal", "/copy/bank.db")
