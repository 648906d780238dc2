"""A server that `npx` or `uvx` loads is loaded once before the runs, by one start, and no run asks a registry. The truth is
what a program in the place of `npx` writes down and refuses."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from till import till

from bench.common.errors import ConfigError
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.box.loading import loader_of
from bench.probe.run.gateway.agent_config import read_config
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores

LOADS = """#!{python}
import os, sys
from pathlib import Path

loaded = Path.home() / ".npm" / "loaded"
if os.environ.get("npm_config_offline") != "true":
    loaded.parent.mkdir(exist_ok=True)
    with loaded.open("a") as file:
        file.write("x")
elif not loaded.exists():
    sys.exit("not loaded, and offline")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def with_loader(folder: Path, *more: str) -> Subject:
    """Make the till's subject, whose server is started by a program of the name `npx`."""
    (npx := folder / "bin" / "npx").parent.mkdir()
    npx.write_text(LOADS.format(python=sys.executable))
    npx.chmod(0o755)
    subject = till(folder, "")
    config = subject.configs[0].path
    server = json.loads(config.read_text())["mcpServers"]["till"]
    config.write_text(json.dumps({"mcpServers": {"till": {"command": "npx", "args": [*more, *server["args"]]}}}))
    return Subject("till", subject.agent, (read_config(config),), settle=0.02, patience=2.0)


def agent_runs(folder: Path, subject: Subject, count: int) -> list[AgentRun]:
    """Run the agent in its box, or skip."""
    home = folder / "home"
    home.mkdir()
    variables = {**os.environ, "HOME": str(home), "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    async def whole() -> list[AgentRun]:
        store = StoreSettings("shop", "sqlite", str(folder / "shop.db"))
        stores = Stores.of([store], folder / "stores", 0.02, boxed=True)
        async with Worker(subject, stores, PrivateFolder(folder / "work", "agent"), Secrets(()), variables) as worker:
            return [await worker.run(Masks()) for _ in range(count)]

    try:
        return asyncio.run(whole())
    except ConfigError as error:
        if "cannot be put into a box" in str(error):
            pytest.skip(str(error))
        raise


def test_a_server_is_loaded_by_one_start_and_no_run_asks_the_registry(tmp_path: Path) -> None:
    made = agent_runs(tmp_path, with_loader(tmp_path), 2)
    assert [agent_run.code for agent_run in made] == [0, 0]
    assert {call.tool for call in made[1].calls} == {"charge", "ship", "ring"}
    assert all(agent_run.written == {} for agent_run in made) and list((tmp_path / "home").iterdir()) == []


def test_a_server_that_does_not_answer_its_first_start_is_named_with_its_last_line(tmp_path: Path) -> None:
    subject = with_loader(tmp_path, "-c", "import sys; sys.exit('no such package')")
    with pytest.raises(ConfigError, match=r"the MCP server till ended before it answered, .* printed last: no such package"):
        agent_runs(tmp_path, subject, 1)


@pytest.mark.parametrize(
    ("command", "loader"), [("npx -y server", "npx"), ("/usr/bin/uvx server", "uvx"), ("node server.js", ""), ("", "")]
)
def test_a_program_that_loads_what_it_starts_is_known_by_its_name(command: str, loader: str) -> None:
    assert loader_of(command.split()) == loader


@pytest.fixture(autouse=True)
def _without_loaders_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("npm_config_offline", "UV_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
