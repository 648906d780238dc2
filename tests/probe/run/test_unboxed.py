"""Names of configs and stores that stand in code: who gets the copy, and who would open the owner's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.probe.run.agent_code import StartedProgram
from bench.probe.run.unboxed import CopiedPath, files_with_fixed_names


def naming(folder: Path, words: tuple[str, ...], name: str, *, variables: tuple[str, ...] = (), store: str = "s") -> list[str]:
    """Return the files that name what is at `name`, of an agent with these words."""
    copied = CopiedPath(store, Path(name), lambda text: text.replace(name, "\0"), frozenset(variables))
    return [file.name for file, _ in files_with_fixed_names([StartedProgram("the agent", words, {}, folder)], [copied])]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bank.db", "import sqlite3; sqlite3.connect('bank.db')"),
        ("bank.db", 'create_engine("sqlite:///bank.db?timeout=1")'),
        ("data/bank.db", "open(f'{HERE}/bank.db')"),
        (".mcp.json", 'json.load(open(".mcp.json"))'),
        ("data", "open('data/ledger.txt', 'a')"),
        ("data", 'Path("data").glob("*")'),
    ],
)
def test_a_name_in_code_that_opens_it_is_found_unless_the_copy_is_handed_over(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "agent.py").write_text(code)
    assert naming(tmp_path, ("python", "agent.py"), name) == ["agent.py"]
    assert naming(tmp_path, ("python", "agent.py", name), name) == ["agent.py"]  # it reads no word of its command
    assert naming(tmp_path, ("python", "agent.py"), name, variables=("PLACE",)) == ["agent.py"]  # it reads no variable
    (tmp_path / "agent.py").write_text(f"import sys; place = sys.argv[1:] or {code}")
    assert naming(tmp_path, ("python", "agent.py"), name) == ["agent.py"]
    assert naming(tmp_path, ("python", "agent.py", name), name) == []
    (tmp_path / "agent.py").write_text(f"import os; place = os.environ.get('PLACE') or {code}")
    assert naming(tmp_path, ("python", "agent.py"), name, variables=("PLACE",)) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bank.db", "open('mybank.db'); open('bank.db.old'); bank.db"),
        ("data", "response['data']; data = {}; 'some data'; open('metadata/x')"),
        (".mcp.json", "open('other.mcp.json')"),
    ],
)
def test_another_name_and_an_everyday_word_are_not_found(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "agent.py").write_text(code)
    assert naming(tmp_path, ("python", "agent.py"), name) == []


def test_code_belongs_to_the_program_whose_command_names_it_and_else_to_the_agent(tmp_path: Path) -> None:
    for name in ("agent.py", "server.py", "helper.py"):
        (tmp_path / name).write_text("import sys; place = sys.argv[1:] or open('bank.db')")
    copied = CopiedPath("s", Path("bank.db"), lambda text: text.replace("bank.db", "\0"))
    agent = StartedProgram("the agent", ("python", "agent.py"), {}, tmp_path)
    server = StartedProgram("the server", ("python", "server.py", "bank.db"), {}, tmp_path)
    deaf = StartedProgram("the server", ("python", "server.py"), {}, tmp_path)
    names = [
        sorted(file.name for file, _ in files_with_fixed_names(each, [copied])) for each in ((agent, server), (agent, deaf))
    ]
    assert names == [["agent.py", "helper.py"], ["agent.py", "helper.py", "server.py"]]


def test_a_config_is_the_agents_alone_and_no_variable_of_the_owners_hands_its_copy_over(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import os; open(os.environ.get('MCP', '.mcp.json'))")
    (tmp_path / "server.py").write_text("open('.mcp.json')")
    agent = StartedProgram("the agent", ("python", "agent.py"), {"MCP": ".mcp.json"}, tmp_path)
    server = StartedProgram("the server", ("python", "server.py"), {}, tmp_path)
    config = CopiedPath("", Path(".mcp.json"), lambda text: text.replace(".mcp.json", "\0"))
    assert [file.name for file, _ in files_with_fixed_names([agent, server], [config])] == ["agent.py"]
