"""The files in which agents find their MCP servers: `.mcp.json`, `claude_desktop_config.json`, and those of editors and other
agents.

Most are JSON, with the comments and trailing commas that editors allow. A rewritten copy differs from the original only in the
bytes that start or address a server. A copy of TOML or YAML has the same values, but not the layout of the original.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from json.decoder import JSONDecoder
from pathlib import Path
from typing import Any

import tomli_w

from bench.common.errors import ConfigError, one_line
from bench.common.files import content_of
from bench.probe.run.gateway.subject import CommandWords, McpConfig, McpServer

MAX_CONFIG_BYTES = 2**20
SERVER_TABLES = (
    ("mcpServers",), ("servers",), ("context_servers",), ("mcp", "servers"), ("mcp", "mcpServers"), ("mcp_servers",),
    ("extensions",), ("mcp",),
)  # fmt: skip
"""The keys that lead to the table of servers: for most agents, in VS Code's `mcp.json`, in Zed's settings, in VS Code's and
fast-agent's settings, in Codex's `config.toml`, in goose's `config.yaml`, in OpenCode's `opencode.json`."""
URL_KEYS = ("url", "serverUrl", "httpUrl", "uri")
COMMAND_KEYS, ENVIRONMENT_KEYS = ("command", "cmd"), ("env", "environment", "envs")
MAX_YAML_CHARS = 2**16
"""A lower bound than for other configs, since YAML takes long to parse."""
SSE_ADVICE = (
    "speaks HTTP with SSE, the transport of MCP's first version, in which no call can be struck; let it serve Streamable HTTP "
    '("type": "http"), or start it over stdio'
)
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|\Z)|\ufeff', re.DOTALL)
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])', re.DOTALL)
_SPACE = re.compile(r"\s*+")
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^{}]*))?\}")

TextSpan = tuple[int, int]
"""The start and the end of a value in the text."""


def read_config(path: Path, variable: str = "") -> McpConfig:
    """Return the MCP servers in an agent's config. `${NAME}` is not replaced.

    Raises:
        ConfigError: The file cannot be read, is no JSON, or names no servers.
    """
    document = _ConfigDocument(path)
    return McpConfig(path, tuple(document.server(name, span) for name, span in document.servers().items()), variable)


def rewrite(config: McpConfig, command_of: Callable[[McpServer], CommandWords], urls: Mapping[str, str]) -> bytes:
    """Return the agent's copy of a config, in which the gateway replaces the servers.

    Args:
        config: The agent's config, as `read_config` returned it.
        command_of: Returns the command that replaces a server's command.
        urls: The new URLs by the names of the servers.

    Raises:
        ConfigError: The file cannot be read any more.
    """
    document = _ConfigDocument(config.path)
    changes: list[tuple[TextSpan, str]] = []
    for name, span in document.servers().items():
        server, spans = document.server(name, span), document.value_spans(span)
        if not server.command:
            changes += [(spans[key], json.dumps(urls[name])) for key in URL_KEYS if key in spans and name in urls]
            continue
        command, *arguments = command_of(server)
        is_list = document.text[spans["command"][0]] == "["  # the command is a list that also has the arguments
        changes.append((spans["command"], json.dumps([command, *arguments] if is_list else command)))
        end = spans["command"][1]
        if "args" in spans:
            changes.append((spans["args"], json.dumps([] if is_list else arguments)))
        elif not is_list:
            changes.append(((end, end), f', "args": {json.dumps(arguments)}'))
    text = document.text
    for (start, end), replacement in sorted(changes, reverse=True):
        text = text[:start] + replacement + text[end:]
    return (tomli_w.dumps(json.loads(text)) if document.is_toml else text).encode()


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Return a text in which the values of variables replace `${NAME}`, `${env:NAME}` and `${NAME:-default}`, as agents do. The
    name of a variable that is not set remains, unless it has a default."""
    return _VARIABLE.sub(lambda match: environment.get(match[1], match[0] if match[2] is None else match[2]), text)


class _ConfigDocument:
    """The text of a config, with the positions of its values. Raises ConfigError if it cannot be read."""

    def __init__(self, path: Path):
        self.path, self.is_toml = path, path.suffix == ".toml"
        try:
            self.text = content_of(path, MAX_CONFIG_BYTES).decode()
            if self.is_toml:
                self.text = json.dumps(tomllib.loads(self.text), default=str)
            elif path.suffix in (".yaml", ".yml"):
                self.text = json.dumps(self._load_yaml(), default=str)
            self._json = _without_comments(self.text)
            json.loads(self._json)
        except OSError as error:
            raise self.refusal(f"it cannot be read ({error.strerror or error}); name the config of the agent") from error
        except UnicodeDecodeError as error:
            raise self.refusal(f"it is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
        except (ValueError, RecursionError) as error:
            raise self.refusal(f"it is no {'TOML' if self.is_toml else 'JSON'} ({error}); correct it there") from error

    def refusal(self, problem: str) -> ConfigError:
        """Return the error for a problem in this file."""
        return ConfigError(f"{self.path}: {problem}")

    def _load_yaml(self) -> Any:
        """Return the content of a YAML file. An alias is refused, since a few of them can expand a value a million times."""
        try:
            import yaml  # noqa: PLC0415  nothing else needs it
        except ImportError as error:
            raise self.refusal("is YAML, which needs: pip install pyyaml; or write its servers into a .mcp.json") from error
        if len(self.text) > MAX_YAML_CHARS:
            raise self.refusal(f"has more than {MAX_YAML_CHARS:,} characters; name a file with the servers alone")
        try:
            if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(self.text)):
                raise self.refusal("holds an alias (*name); write out what it stands for")
            return yaml.safe_load(self.text)
        except yaml.YAMLError as error:
            raise self.refusal(f"it is no YAML ({one_line(str(error), 200)}); correct it there") from error

    def servers(self) -> dict[str, TextSpan]:
        """Return name -> position of each server's entry, without servers that are disabled or built into the agent. Raises
        ConfigError if there are none."""
        for table in SERVER_TABLES:
            span: TextSpan | None = (self._skip_space(0), len(self._json))
            for key in table:
                span = self.members(span).get(key) if span else None
            entries = self.members(span) if span else {}
            servers = {name: entry for name, entry in entries.items() if not self._is_disabled(entry)}
            if servers and (table != ("mcp",) or all(map(self.members, servers.values()))):
                return servers
        raise self.refusal("it names no MCP servers; write them under 'mcpServers'")

    def _is_disabled(self, span: TextSpan) -> bool:
        """Return whether an entry is disabled, or describes a server that is built into the agent."""
        values = {
            key: self._value(value_span)
            for key, value_span in self.members(span).items()
            if key in ("disabled", "enabled", "type")
        }
        return values.get("disabled") is True or values.get("enabled") is False or values.get("type") in ("builtin", "platform")

    def server(self, name: str, span: TextSpan) -> McpServer:
        """Return the server that an entry describes. Raises ConfigError if its values have wrong types."""
        values = {key: self._value(value_span) for key, value_span in self.value_spans(span).items()}
        command, arguments = values.get("command"), values.get("args") or []
        if isinstance(command, list) and command:
            command, *first_arguments = command
            arguments = [*first_arguments, *arguments] if isinstance(arguments, list) else arguments
        url = next((values[key] for key in URL_KEYS if key in values), "")
        if not isinstance(command or url, str) or not (command or url):
            raise self.refusal(f"the server '{name}' has neither a command nor a url; add one, or remove the server")
        if not isinstance(arguments, list) or not all(isinstance(word, str) for word in arguments):
            raise self.refusal(f"the 'args' of the server '{name}' are no list of texts; correct them there")
        environment, headers = self._texts(name, "env", values), self._texts(name, "headers", values)
        if command:
            return McpServer(name, (command, *arguments), environment)
        if "sse" in (values.get("type"), values.get("transport")):
            raise self.refusal(f"the server '{name}' {SSE_ADVICE}")
        return McpServer(name, url=url, headers=headers)

    def _texts(self, server: str, key: str, values: Mapping[str, Any]) -> dict[str, str]:
        """Return the table of texts at `key` in a server's values; {} if there is none. Raises ConfigError."""
        table = values.get(key) or {}
        if not isinstance(table, dict) or any(isinstance(value, dict | list) or "=" in name for name, value in table.items()):
            raise self.refusal(f"the '{key}' of the server '{server}' is no table of texts; correct it there")
        set_values = {name: value for name, value in table.items() if value is not None}
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in set_values.items()}

    def value_spans(self, span: TextSpan) -> dict[str, TextSpan]:
        """Return the positions of a server's values by their most usual names. In Zed's config the command is an object with
        the path, the arguments and the variables."""
        spans = self.members(span)
        for names in (COMMAND_KEYS, ENVIRONMENT_KEYS):
            spans |= next(({names[0]: spans[name]} for name in names if name in spans), {})
        if "command" in spans and self._json[spans["command"][0]] == "{" and (inner_spans := self.members(spans["command"])):
            return {
                "command": inner_spans.get("path", spans["command"]),
                **{key: inner_spans[key] for key in ("args", "env") if key in inner_spans},
            }
        return spans

    def members(self, span: TextSpan) -> dict[str, TextSpan]:
        """Return the positions of the members of an object, or of the objects in a list by their `name`; {} for another
        value."""
        position, members = span[0], dict[str, TextSpan]()
        if (bracket := self._json[position]) not in "{[":
            return {}
        position = self._skip_space(position + 1)
        while self._json[position] not in "}]":
            name = str(len(members))
            if bracket == "{":
                name, end = JSONDecoder().raw_decode(self._json, position)
                position = self._skip_space(self._skip_space(end) + 1)
            value, end = JSONDecoder().raw_decode(self._json, position)
            if bracket == "[" and isinstance(value, dict):
                name = str(value.get("name", name))
            members[name] = (position, end)
            position = self._skip_space(end)
            if self._json[position] == ",":
                position = self._skip_space(position + 1)
        return members

    def _value(self, span: TextSpan) -> Any:
        """Return the parsed value at a position."""
        return json.loads(self._json[slice(*span)])

    def _skip_space(self, position: int) -> int:
        """Return the first position from here on that is no white space."""
        space = _SPACE.match(self._json, position)
        return space.end() if space else position


def _without_comments(text: str) -> str:
    """Return JSON with spaces in place of comments and trailing commas, so that all other characters keep their positions."""
    text = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"\S|\ufeff", " ", match[0]), text)
    return _COMMA.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)
