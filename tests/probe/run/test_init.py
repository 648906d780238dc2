"""`bench probe --init` writes what a folder holds, and overwrites nothing."""

from __future__ import annotations

import json
import shlex
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.init import draft_of, static_tables, write_probe_file
from bench.probe.run.probe_file import ProbeFile
from bench.probe.run.settings import ProbeSettings

CONFIG = {"mcpServers": {"shop": {"command": "python", "args": ["shop.py", "data/orders.db"]}}}


def database(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")


def written(folder: Path, *command: str, **environment: str) -> str:
    draft = draft_of(folder, environment, folder / "home", command)
    return write_probe_file(folder / "probe.toml", static_tables(draft))


def test_the_commonest_case_is_whole_and_has_no_more_than_fifteen_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("import sys; print(open(sys.argv[1]).read())")
    (tmp_path / ".mcp.json").write_text(json.dumps(CONFIG))
    database(tmp_path / "data" / "orders.db")
    text = written(tmp_path, "python", "agent.py", ".mcp.json", OPENAI_API_KEY="key")
    values = tomllib.loads(text)
    assert len(text.splitlines()) <= 15 and all("#" in line for line in text.splitlines() if "=" in line)
    assert values["agent"] == "python agent.py .mcp.json" and values["mcp"] == ".mcp.json"
    assert values["store"] == [{"sqlite": "data/orders.db"}] and values["model"]["variables"] == ["OPENAI_BASE_URL"]
    settings = ProbeSettings(tmp_path / "probe.toml", {})
    assert settings.subject.agent.start == ("python", "agent.py", ".mcp.json") and settings.stores[0].where == "data/orders.db"
    assert settings.subject.configs[0].servers[0].command == ("python", "shop.py", "data/orders.db")


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "probe.toml").write_text("mine")
    with pytest.raises(ConfigError, match="is there already"):
        written(tmp_path)
    assert (tmp_path / "probe.toml").read_text() == "mine"


def test_configs_of_editors_and_of_claude_desktop_are_found(tmp_path: Path) -> None:
    desktop = tmp_path / "home" / ".config" / "Claude" / "claude_desktop_config.json"
    desktop.parent.mkdir(parents=True)
    desktop.write_text(json.dumps(CONFIG))
    assert tomllib.loads(written(tmp_path))["mcp"] == "home/.config/Claude/claude_desktop_config.json"
    (tmp_path / "probe.toml").unlink()
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps(CONFIG))
    assert tomllib.loads(written(tmp_path))["mcp"] == ".cursor/mcp.json"


def test_the_address_of_a_database_is_named_and_never_written(tmp_path: Path) -> None:
    text = written(tmp_path, DATABASE_URL="postgresql://me:secret-word@host/db")
    assert 'postgres = "$DATABASE_URL"' in text and "secret-word" not in text


def test_a_line_end_in_a_files_name_writes_no_key(tmp_path: Path) -> None:
    database(tmp_path / 'x\n[[store]]\nfolder = "home"\nignore = []\n#.db')
    read = tomllib.loads(written(tmp_path))
    assert read.keys() == {"store"} and [[*store] for store in read["store"]] == [["sqlite"]]


def test_a_folder_with_nothing_gets_lines_that_say_what_to_write(tmp_path: Path) -> None:
    text = written(tmp_path)
    assert "write the command that starts one whole task" in text and "no store was found" in text
    with pytest.raises(ConfigError, match="agent: is missing"):
        ProbeSettings(tmp_path / "probe.toml", {})


def test_what_looks_like_a_database_and_is_none_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "fake.db").write_text("no database")
    database(tmp_path / "node_modules" / "inner.db")
    database(tmp_path / ".hidden" / "inner.db")
    assert 'sqlite = "' not in written(tmp_path).replace('# sqlite = "', "")


def test_a_name_with_blanks_and_other_alphabets_is_text_of_toml(tmp_path: Path) -> None:
    database(tmp_path / 'données "1" 台帳.db')
    assert tomllib.loads("agent = 'x'\n" + "\n".join(line for line in written(tmp_path).splitlines() if line[0] != "#"))[
        "store"
    ] == [{"sqlite": 'données "1" 台帳.db'}]


def test_every_key_that_init_can_write_is_one_of_the_file(tmp_path: Path) -> None:
    text = written(tmp_path, "python", "main.py", ANTHROPIC_API_KEY="key", DATABASE_URL="postgres://h/db")
    assert ProbeFile.model_validate(tomllib.loads(text)).model and "anthropic" in text


def test_a_login_in_an_address_of_a_dotenv_file_is_not_written(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "OPENAI_BASE_URL=https://me:secret-word@proxy.example/v1\nDATABASE_URL=postgres://me:secret-word@h/db\n"
    )
    text = written(tmp_path)
    assert "secret-word" not in text and 'url = "$OPENAI_BASE_URL"' in text and '# postgres = "$DATABASE_URL"' in text


def test_the_command_that_is_given_is_the_agents_and_the_config_that_it_names_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps(CONFIG))
    (tmp_path / ".mcp.json").write_text(json.dumps(CONFIG))
    values = tomllib.loads(written(tmp_path, "python", "my agent.py", "--mcp=other.json"))
    assert values["agent"] == "python 'my agent.py' --mcp=other.json" and values["mcp"] == "other.json"


def test_a_config_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{")
    text = written(tmp_path)
    assert "it is no JSON" in text and "mcp" not in tomllib.loads(text)


def test_a_database_that_a_config_names_is_a_store_and_its_login_is_written_nowhere(tmp_path: Path) -> None:
    args = ["postgres://localhost/shop", "postgresql://me:secret-word@localhost/till"]
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"shop": {"command": "serve", "args": args}}}))
    text = written(tmp_path, "python", "agent.py")
    assert tomllib.loads(text)["store"] == [{"postgres": "postgres://localhost/shop"}]
    assert '# postgres = "postgresql://localhost/till"' in text and "secret-word" not in text
    plan = "\n".join(draft_of(tmp_path, {}, tmp_path, ("python", "agent.py")).plan)
    assert "a copy of the database at postgresql://localhost/till" in plan and "secret-word" not in plan


def test_what_acts_on_another_machine_is_told_before_anything_runs(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    draft = draft_of(tmp_path, {"DATABASE_URL": "postgres://db.example.com/shop"}, tmp_path, ("python", "agent.py"))
    assert draft.remote_service == "the database that DATABASE_URL names is at db.example.com"
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"shop": {"url": "https://mcp.example.com/"}}}))
    assert (
        draft_of(tmp_path, {}, tmp_path, ("python", "agent.py")).remote_service == "the MCP server shop is at mcp.example.com"
    )
    addresses = {"SHOP_URL": "https://shop.example.com", "TILL_URL": "http://127.0.0.1:9", "OPENAI_API_KEY": "key"}
    draft = draft_of(tmp_path, addresses, tmp_path, ("python", "agent.py"))
    led = {unasked: {service.name for service in draft.watched_subject(unasked)[0].services} for unasked in (True, False)}
    assert led == {True: {"TILL_URL", "OPENAI_BASE_URL"}, False: {"SHOP_URL", "TILL_URL", "OPENAI_BASE_URL"}}


def test_a_server_that_must_be_loaded_is_told_with_the_whole_network_and_is_not_started_unasked(tmp_path: Path) -> None:
    server = {"command": "/usr/bin/npx", "args": ["-y", "mcp-remote", "https://mcp.example.com"]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"shop": server}}))
    draft = draft_of(tmp_path, {}, tmp_path, ("python", "agent.py"))
    assert draft.remote_service == "npx loads the MCP server shop, which has the whole network meanwhile"
    assert "WHOLE network, so that npx loads it" in "\n".join(draft.plan)
    (tmp_path / ".mcp.json").write_text(json.dumps(CONFIG))
    draft = draft_of(tmp_path, {}, tmp_path, ("python", "agent.py"))
    assert draft.remote_service == "" and "WHOLE" not in "\n".join(draft.plan)


@pytest.mark.parametrize(
    ("address", "is_bare"),
    [
        ("https://proxy.example/v1", True),
        ("https://proxy.example:81/", True),
        ("https://proxy.example", True),
        ("https://hooks.example/services/T0001/verysecretpath", False),
        ("https://api.example/bot77:verysecretpath", False),
        ("https://proxy.example/v1?key=verysecretpath", False),
    ],
)
def test_an_address_of_a_dotenv_file_is_written_only_if_its_path_can_hold_no_key(
    tmp_path: Path, address: str, is_bare: bool
) -> None:
    (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={address}\n")
    text = written(tmp_path)
    assert (f'url = "{address}"' in text) == is_bare and ('url = "$OPENAI_BASE_URL"' in text) != is_bare
    assert "verysecretpath" not in text


def test_a_password_among_the_parameters_of_a_databases_address_is_a_login(tmp_path: Path) -> None:
    address = "postgresql://localhost/till?user=me&password=hunter2hunter2"
    server = {"command": "serve", "args": ["--api-key", "hunter3hunter3"], "env": {"TILL": address}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"shop": server}}))
    command = ("python", "agent.py", "--dsn", "postgresql://app:hunter4hunter4@localhost/shop")
    draft = draft_of(tmp_path, {}, tmp_path, command)
    text = write_probe_file(tmp_path / "probe.toml", static_tables(draft))
    assert '# postgres = "postgresql://localhost/till?user=me&password=***"' in text and "store" not in tomllib.loads(text)
    assert shlex.split(tomllib.loads(text)["agent"]) == [*command] and "with a secret, which this file now holds too" in text
    shown = "\n".join([*draft.plan, draft.for_terminal(text)])
    assert "hunter" not in shown and "serve --api-key ***" in shown and "--dsn postgresql://localhost/shop" in shown
