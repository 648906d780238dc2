"""The files in which agents find their MCP servers: `.mcp.json`, `claude_desktop_config.json`, and those of editors and other
agents.

Most are JSON, with the comments and trailing commas that editors allow. A rewritten copy differs from the original in what
starts or addresses a server, and in no other byte. Of TOML and YAML the values are kept, and the copy is laid out anew.
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

LARGEST = 2**20
"""Bytes of a config."""
TABLES = (
    ("mcpServers",), ("servers",), ("context_servers",), ("mcp", "servers"), ("mcp", "mcpServers"), ("mcp_servers",),
    ("extensions",), ("mcp",),
)  # fmt: skip
"""Where the servers stand: for most agents, in VS Code's `mcp.json`, in Zed's settings, in VS Code's and fast-agent's settings,
in Codex's `config.toml`, in goose's `config.yaml`, in OpenCode's `opencode.json`."""
URLS, COMMANDS, ENVIRONMENTS = ("url", "serverUrl", "httpUrl", "uri"), ("command", "cmd"), ("env", "environment", "envs")
LARGEST_YAML = 2**16
"""Bytes: YAML takes long to read."""
SSE = (
    "speaks HTTP with SSE, the transport of MCP's first version, in which no call can be struck; let it serve Streamable HTTP "
    '("type": "http"), or start it over stdio'
)
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|\Z)|\ufeff', re.DOTALL)
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])', re.DOTALL)
_SPACE = re.compile(r"\s*+")
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^{}]*))?\}")

TextSpan = tuple[int, int]


def read_config(path: Path, variable: str = "") -> McpConfig:
    """Return the MCP servers in an agent's config. `${NAME}` is not replaced.

    Raises:
        ConfigError: The file cannot be read, is no JSON, or names no servers.
    """
    document = _ConfigDocument(path)
    return McpConfig(path, tuple(document.server(name, span) for name, span in document.servers().items()), variable)


def rewrite(config: McpConfig, words: Callable[[McpServer], CommandWords], urls: Mapping[str, str]) -> bytes:
    """Return the agent's copy of a config, in which the gateway replaces the servers.

    Args:
        config: The config.
        words: Returns the command that replaces a server's command.
        urls: The new URLs by the names of the servers.

    Raises:
        ConfigError: The file cannot be read any more.
    """
    document = _ConfigDocument(config.path)
    changes: list[tuple[TextSpan, str]] = []
    for name, span in document.servers().items():
        server, places = document.server(name, span), document.value_spans(span)
        if not server.command:
            changes += [(places[key], json.dumps(urls[name])) for key in URLS if key in places and name in urls]
            continue
        command, *arguments = words(server)
        one_list = document.text[places["command"][0]] == "["
        changes.append((places["command"], json.dumps([command, *arguments] if one_list else command)))
        end = places["command"][1]
        if "args" in places:
            changes.append((places["args"], json.dumps([] if one_list else arguments)))
        elif not one_list:
            changes.append(((end, end), f', "args": {json.dumps(arguments)}'))
    text = document.text
    for (start, end), new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return (tomli_w.dumps(json.loads(text)) if document.is_toml else text).encode()


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with `${NAME}`, `${env:NAME}` and `${NAME:-default}` replaced, as agents do. Unknown names are not
    replaced."""
    return _VARIABLE.sub(lambda match: environment.get(match[1], match[0] if match[2] is None else match[2]), text)


class _ConfigDocument:
    """The text of a config, with the positions of its values. Raises ConfigError if it cannot be read."""

    def __init__(self, path: Path):
        self.path, self.is_toml = path, path.suffix == ".toml"
        try:
            self.text = content_of(path, LARGEST).decode()
            if self.is_toml:
                self.text = json.dumps(tomllib.loads(self.text), default=str)
            elif path.suffix in (".yaml", ".yml"):
                self.text = json.dumps(self._of_yaml(), default=str)
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

    def _of_yaml(self) -> Any:
        """Return the content of a YAML file. An alias is refused, since a few of them can expand a value a million times."""
        try:
            import yaml  # noqa: PLC0415  nothing else needs it
        except ImportError as error:
            raise self.refusal("is YAML, which needs: pip install pyyaml; or write its servers into a .mcp.json") from error
        if len(self.text) > LARGEST_YAML:
            raise self.refusal(f"has more than {LARGEST_YAML:,} characters; name a file with the servers alone")
        try:
            if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(self.text)):
                raise self.refusal("holds an alias (*name); write out what it stands for")
            return yaml.safe_load(self.text)
        except yaml.YAMLError as error:
            raise self.refusal(f"it is no YAML ({one_line(str(error), 200)}); correct it there") from error

    def servers(self) -> dict[str, TextSpan]:
        """Return the position of each server's entry, without servers that are disabled or built into the agent."""
        for table in TABLES:
            span: TextSpan | None = (self._next(0), len(self._json))
            for key in table:
                span = self.members(span).get(key) if span else None
            entries = self.members(span) if span else {}
            servers = {name: entry for name, entry in entries.items() if not self._is_left_out(entry)}
            if servers and (table != ("mcp",) or all(map(self.members, servers.values()))):
                return servers
        raise self.refusal("it names no MCP servers; write them under 'mcpServers'")

    def _is_left_out(self, span: TextSpan) -> bool:
        """Return whether an entry is disabled, or a server that is built into the agent."""
        values = {
            key: self._value(place) for key, place in self.members(span).items() if key in ("disabled", "enabled", "type")
        }
        return values.get("disabled") is True or values.get("enabled") is False or values.get("type") in ("builtin", "platform")

    def server(self, name: str, span: TextSpan) -> McpServer:
        """Return the server that an entry describes."""
        values = {key: self._value(place) for key, place in self.value_spans(span).items()}
        command, arguments = values.get("command"), values.get("args") or []
        if isinstance(command, list) and command:
            command, *begins = command
            arguments = [*begins, *arguments] if isinstance(arguments, list) else arguments
        url = next((values[key] for key in URLS if key in values), "")
        if not isinstance(command or url, str) or not (command or url):
            raise self.refusal(f"the server '{name}' has neither a command nor a url; add one, or remove the server")
        if not isinstance(arguments, list) or not all(isinstance(word, str) for word in arguments):
            raise self.refusal(f"the 'args' of the server '{name}' are no list of texts; correct them there")
        tables = [values.get("env") or {}, values.get("headers") or {}]
        for key, table in zip(("env", "headers"), tables, strict=True):
            if not isinstance(table, dict) or any(
                isinstance(value, dict | list) or "=" in each for each, value in table.items()
            ):
                raise self.refusal(f"the '{key}' of the server '{name}' is no table of texts; correct it there")
        environment, headers = (
            {each: value if isinstance(value, str) else json.dumps(value) for each, value in table.items() if value is not None}
            for table in tables
        )
        if command:
            return McpServer(name, (command, *arguments), environment)
        if "sse" in (values.get("type"), values.get("transport")):
            raise self.refusal(f"the server '{name}' {SSE}")
        return McpServer(name, url=url, headers=headers)

    def value_spans(self, span: TextSpan) -> dict[str, TextSpan]:
        """Return the positions of a server's values by their usual names. In Zed's config the command is an object with the
        path, the arguments and the variables."""
        places = self.members(span)
        for names in (COMMANDS, ENVIRONMENTS):
            places |= next(({names[0]: places[name]} for name in names if name in places), {})
        if "command" in places and self._json[places["command"][0]] == "{" and (inner := self.members(places["command"])):
            return {
                "command": inner.get("path", places["command"]),
                **{key: inner[key] for key in ("args", "env") if key in inner},
            }
        return places

    def members(self, span: TextSpan) -> dict[str, TextSpan]:
        """Return the positions of the members of an object, or of the objects in a list by their `name`; {} for another
        value."""
        at, members = span[0], dict[str, TextSpan]()
        if (opens := self._json[at]) not in "{[":
            return {}
        at = self._next(at + 1)
        while self._json[at] not in "}]":
            name = str(len(members))
            if opens == "{":
                name, end = JSONDecoder().raw_decode(self._json, at)
                at = self._next(self._next(end) + 1)
            value, end = JSONDecoder().raw_decode(self._json, at)
            if opens == "[" and isinstance(value, dict):
                name = str(value.get("name", name))
            members[name] = (at, end)
            at = self._next(end)
            if self._json[at] == ",":
                at = self._next(at + 1)
        return members

    def _value(self, span: TextSpan) -> Any:
        return json.loads(self._json[slice(*span)])

    def _next(self, at: int) -> int:
        """Return the position after the white space."""
        space = _SPACE.match(self._json, at)
        return space.end() if space else at


def _without_comments(text: str) -> str:
    """Return JSON with spaces in place of comments and trailing commas, so that all other characters keep their positions."""
    text = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"\S|\ufeff", " ", match[0]), text)
    return _COMMA.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)
