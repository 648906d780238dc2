"""The files in which agents find their MCP servers: `.mcp.json`, `claude_desktop_config.json`, and those of editors.

They are JSON, with the comments and trailing commas that editors allow. A rewritten copy differs from the original in what
starts or addresses a server, and in no other byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from json.decoder import JSONDecoder
from pathlib import Path
from typing import Any

from bench.common.errors import ConfigError
from bench.common.files import content_of
from bench.probe.run.gateway.subject import CommandWords, McpConfig, McpServer

LARGEST = 2**20
"""Bytes of a config."""
TABLES = (("mcpServers",), ("servers",), ("context_servers",), ("mcp", "servers"), ("mcp", "mcpServers"))
"""Where the servers stand: for most agents, in VS Code's `mcp.json`, in Zed's settings, in VS Code's settings."""
URLS = ("url", "serverUrl", "httpUrl")
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|\Z)|\ufeff', re.DOTALL)
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])', re.DOTALL)
_SPACE = re.compile(r"\s*+")
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^{}]*))?\}")

TextSpan = tuple[int, int]


def read_config(path: Path, variable: str = "") -> McpConfig:
    """Return what a config of an agent says of its MCP servers. `${NAME}` stays as it stands.

    Raises:
        ConfigError: The file cannot be read, is no JSON, or names no servers.
    """
    document = _Document(path)
    return McpConfig(path, tuple(document.server(name, span) for name, span in document.servers().items()), variable)


def rewritten(config: McpConfig, words: Callable[[McpServer], CommandWords], urls: Mapping[str, str]) -> bytes:
    """Return the agent's copy of a config. `words` starts a server in place of its command; `urls` has the new URLs by name.

    Raises:
        ConfigError: The file cannot be read any more.
    """
    document = _Document(config.path)
    changes: list[tuple[TextSpan, str]] = []
    for name, span in document.servers().items():
        server, places = document.server(name, span), document.places(span)
        if server.command:
            command, *arguments = words(server)
            changes.append((places["command"], json.dumps(command)))
            end = places["command"][1]
            changes.append(
                (places["args"], json.dumps(arguments))
                if "args" in places
                else ((end, end), f', "args": {json.dumps(arguments)}')
            )
        else:
            changes += [(places[key], json.dumps(urls[name])) for key in URLS if key in places and name in urls]
    text = document.text
    for (start, end), new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text.encode()


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with `${NAME}`, `${env:NAME}` and `${NAME:-default}` replaced, as agents do. Unknown names stay."""
    return _VARIABLE.sub(lambda match: environment.get(match[1], match[0] if match[2] is None else match[2]), text)


class _Document:
    """A config with the places of its values. Raises ConfigError if it cannot be read."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.text = content_of(path, LARGEST).decode()
            self._plain = _plain(self.text)
            json.loads(self._plain)
        except OSError as error:
            raise self.refusal(f"it cannot be read ({error.strerror or error}); name the config of the agent") from error
        except UnicodeDecodeError as error:
            raise self.refusal(f"it is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
        except (ValueError, RecursionError) as error:
            raise self.refusal(f"it is no JSON ({error}); correct it there") from error

    def refusal(self, what: str) -> ConfigError:
        return ConfigError(f"{self.path}: {what}")

    def servers(self) -> dict[str, TextSpan]:
        """Return where each server's entry stands."""
        for table in TABLES:
            span: TextSpan | None = (self._next(0), len(self._plain))
            for key in table:
                span = self.members(span).get(key) if span else None
            if span and (servers := self.members(span)):
                return servers
        raise self.refusal("it names no MCP servers; write them under 'mcpServers'")

    def server(self, name: str, span: TextSpan) -> McpServer:
        """Return a server as its entry has it."""
        values = {key: self._value(place) for key, place in self.places(span).items()}
        command, arguments, environment, headers = (values.get(key) for key in ("command", "args", "env", "headers"))
        url = next((values[key] for key in URLS if key in values), "")
        if not isinstance(command or url, str) or not (command or url):
            raise self.refusal(f"the server '{name}' has neither a command nor a url; add one, or remove the server")
        if not isinstance(arguments or [], list) or not all(isinstance(word, str) for word in arguments or []):
            raise self.refusal(f"the 'args' of the server '{name}' are no list of texts; correct them there")
        for key, table in (("env", environment or {}), ("headers", headers or {})):
            if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
                raise self.refusal(f"the '{key}' of the server '{name}' is no table of texts; correct it there")
        if command:
            return McpServer(name, (command, *(arguments or ())), environment or {})
        return McpServer(name, url=url, headers=headers or {})

    def places(self, span: TextSpan) -> dict[str, TextSpan]:
        """Return where a server's values stand. Zed has an object with the path, the arguments and the variables as command."""
        places = self.members(span)
        if inner := self.members(places["command"]) if "command" in places else {}:
            return {
                "command": inner.get("path", places["command"]),
                **{key: inner[key] for key in ("args", "env") if key in inner},
            }
        return places

    def members(self, span: TextSpan) -> dict[str, TextSpan]:
        """Return where the values of an object stand; {} for what is no object."""
        at, members = span[0], {}
        if self._plain[at] != "{":
            return {}
        at = self._next(at + 1)
        while self._plain[at] != "}":
            name, end = JSONDecoder().raw_decode(self._plain, at)
            at = self._next(self._next(end) + 1)
            _, end = JSONDecoder().raw_decode(self._plain, at)
            members[name] = (at, end)
            at = self._next(end)
            if self._plain[at] == ",":
                at = self._next(at + 1)
        return members

    def _value(self, span: TextSpan) -> Any:
        return json.loads(self._plain[slice(*span)])

    def _next(self, at: int) -> int:
        space = _SPACE.match(self._plain, at)
        return space.end() if space else at


def _plain(text: str) -> str:
    """Return JSON without comments and trailing commas. What stays is at its place."""
    text = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"\S|\ufeff", " ", match[0]), text)
    return _COMMA.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)
