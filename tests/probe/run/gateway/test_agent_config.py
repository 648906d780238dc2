"""Agents' configs: read as they are, and copied with other servers and no other difference."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from time import process_time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bench.common.errors import ConfigError
from bench.probe.run.gateway.agent_config import expand, read_config, rewrite
from bench.probe.run.gateway.subject import CommandWords, McpServer

SHOP = McpServer("shop", ("npx", "-y", "server", "${workspaceFolder}/a b"), {"KEY": "${SECRET}"})
COMMENTED = """\ufeff{
  // servers of the team: "mcpServers": {}
  "mcpServers": {
    "shop" : { "command":"npx", /* "args": [] */ "args": ["-y", "server", "${workspaceFolder}/a b",],
\t\t"env": {"KEY": "${SECRET}"}, "disabled": false },
    "магазин": {"type": "http", "url": "http://127.0.0.1:9/mcp?a=//b", "headers": {"Authorization": "Bearer ${TOKEN}"}},
  },\r
  "théme": "dark \\" // no comment",
}
"""


def test_comments_commas_and_other_alphabets_are_read(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, COMMENTED), "MCP_CONFIG")
    far = McpServer("магазин", url="http://127.0.0.1:9/mcp?a=//b", headers={"Authorization": "Bearer ${TOKEN}"})
    assert config.servers == (SHOP, far)
    assert config.variable == "MCP_CONFIG"


def test_a_copy_differs_in_what_starts_or_addresses_a_server_and_nowhere_else(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, COMMENTED))
    copy = rewrite(config, shim, {"магазин": "http://127.0.0.1:5/x"}).decode()
    expected = COMMENTED.replace('"command":"npx"', '"command":"shim"').replace(
        "http://127.0.0.1:9/mcp?a=//b", "http://127.0.0.1:5/x"
    )
    expected = expected.replace(
        '["-y", "server", "${workspaceFolder}/a b",]', '["shop", "npx", "-y", "server", "${workspaceFolder}/a b"]'
    )
    assert copy == expected
    assert config.path.read_bytes() == COMMENTED.encode()


@pytest.mark.parametrize("table", ["mcpServers", "servers", "context_servers", "mcp.servers"])
def test_servers_are_found_where_agents_and_editors_have_them(tmp_path: Path, table: str) -> None:
    entry = {"shop": {"command": SHOP.command[0], "args": SHOP.command[1:], "env": dict(SHOP.environment)}}
    content = {"mcp": {"servers": entry}} if table == "mcp.servers" else {"other": [1], table: entry}
    config = read_config(written(tmp_path, json.dumps(content)))
    assert config.servers == (SHOP,)
    again = read_config(written(tmp_path, rewrite(config, shim, {}).decode()))
    assert again.servers[0].command == shim(SHOP)


def test_zeds_command_can_be_an_object(tmp_path: Path) -> None:
    entry = {"command": {"path": "npx", "args": list(SHOP.command[1:]), "env": dict(SHOP.environment)}, "settings": {}}
    config = read_config(written(tmp_path, json.dumps({"context_servers": {"shop": entry}})))
    assert config.servers == (SHOP,)
    copy = json.loads(rewrite(config, shim, {}))["context_servers"]["shop"]
    assert (copy["command"]["path"], *copy["command"]["args"]) == shim(SHOP)
    assert copy["command"]["env"] == dict(SHOP.environment)


def test_a_server_without_arguments_gets_those_of_the_shim(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, '{"mcpServers": {"shop": {"command": "run it"}}}'))
    copy = json.loads(rewrite(config, shim, {}))["mcpServers"]["shop"]
    assert copy == {"command": "shim", "args": ["shop", "run it"]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "it is no JSON"),
        ("[" * 5000, "it is no JSON"),
        ("[]", "it names no MCP servers"),
        ('{"mcpServers": {}}', "it names no MCP servers"),
        ('{"mcpServers": {"a": {}}}', "neither a command nor a url"),
        ('{"mcpServers": {"a": 5}}', "neither a command nor a url"),
        ('{"mcpServers": {"a": {"command": []}}}', "neither a command nor a url"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "are no list of texts"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"K": [5]}}}}', "is no table of texts"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"A=B": "x"}}}}', "is no table of texts"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "http://h/s"}}}', "the server 'a' speaks HTTP with SSE"),
    ],
)
def test_what_is_no_config_is_refused_in_one_line(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        read_config(written(tmp_path, content))
    assert "\n" not in str(refused.value)


EACH_FORM = {
    "opencode.json": """{"mcp": {"shop": {"type": "local", "command": ["npx", "-y", "server", "a b"], "enabled": true,
        "environment": {"PORT": 8080, "DEBUG": true, "KEY": "k"}},
        "old": {"type": "local", "command": ["x"], "enabled": false}}}""",
    "config.toml": """model = "m"\n[mcp_servers.shop]\ncommand = "npx"\nargs = ["-y", "server", "a b"]
        [mcp_servers.shop.env]\nPORT = 8080\nDEBUG = true\nKEY = "k"\n""",
    "fastagent.config.yaml": """# servers\nmcp:\n  servers:\n    shop:\n      command: npx\n      args: ["-y", server, "a b"]
      env: {PORT: 8080, DEBUG: true, KEY: k}\n""",
    "goose.yaml": """extensions:\n  developer: {type: builtin, name: developer}\n  shop:\n    type: stdio\n    cmd: npx
    args: ["-y", server, "a b"]\n    envs: {PORT: 8080, DEBUG: true, KEY: k}\n""",
    "continue.yaml": """mcpServers:\n  - name: shop\n    command: npx\n    args: ["-y", server, "a b"]
    env: {PORT: 8080, DEBUG: true, KEY: k}\n""",
}


@pytest.mark.parametrize("name", EACH_FORM)
def test_configs_of_other_agents_are_read_and_rewritten_in_their_own_form(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(EACH_FORM[name], encoding="utf-8")
    config = read_config(path)
    assert config.servers == (McpServer("shop", ("npx", "-y", "server", "a b"), {"PORT": "8080", "DEBUG": "true", "KEY": "k"}),)
    copy = tmp_path / f"copy{path.suffix}"
    copy.write_bytes(rewrite(config, shim, {}))
    [server] = read_config(copy).servers
    assert server.command == ("shim", "shop", "npx", "-y", "server", "a b")
    before, after = (loaded(each) for each in (path, copy))
    assert before != after and without_commands(before) == without_commands(after)


def loaded(path: Path) -> object:
    """Return what a config says, by the readers of others."""
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)


def without_commands(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_commands(inner) for key, inner in value.items() if key not in ("command", "cmd", "args")}
    return [without_commands(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "it is no YAML"),
        ("a: &x [1]\nb: *x\n", "holds an alias"),
        ("a: 1", "it names no MCP servers"),
        ("- " * 50_000, "has more than 65,536 characters"),
        ("!!python/object/apply:os.system ['touch CANARY']", "it is no YAML"),
    ],
)
def test_what_is_no_config_in_yaml_is_refused_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=says) as refused:
        read_config(tmp_path / "a.yaml")
    assert "\n" not in str(refused.value)


def test_a_config_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path / "none.json")
    (tmp_path / "mcp.json").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_config(tmp_path / "mcp.json")


@pytest.mark.parametrize("text", ['"' + '\\"' * 400_000, "/*" * 400_000, "," * 800_000, ", " * 400_000, "/" * 800_000])
def test_hostile_configs_are_refused_in_little_time(tmp_path: Path, text: str) -> None:
    began = process_time()
    with pytest.raises(ConfigError):
        read_config(written(tmp_path, text))
    assert process_time() - began < 2


@given(
    st.dictionaries(st.text(min_size=1), st.lists(st.text(), max_size=3), min_size=1, max_size=4),
    st.sampled_from([None, 1, "\t"]),
)
def test_any_words_come_back_as_they_stood(
    tmp_path_factory: pytest.TempPathFactory, servers: dict[str, list[str]], indent: int
) -> None:
    folder = tmp_path_factory.mktemp("config")
    content = {"mcpServers": {name: {"command": "run", "args": words} for name, words in servers.items()}}
    config = read_config(written(folder, json.dumps(content, indent=indent)))
    assert {server.name: list(server.command[1:]) for server in config.servers} == servers
    copy = json.loads(rewrite(config, shim, {}))["mcpServers"]
    assert {name: entry["args"] for name, entry in copy.items()} == {
        name: [name, "run", *words] for name, words in servers.items()
    }


def test_variables_are_replaced_as_agents_do() -> None:
    assert (
        expand("${HOST}:${PORT:-80}/${env:PATH_}/${workspaceFolder}", {"HOST": "h", "PATH_": "p"})
        == "h:80/p/${workspaceFolder}"
    )


def shim(server: McpServer) -> CommandWords:
    return "shim", server.name, *server.command


def written(folder: Path, content: str) -> Path:
    path = folder / "mcp.json"
    path.write_bytes(content.encode())
    return path
