"""The values that no output of a probe may contain: secrets in the owner's files and variables."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from bench.common.digests import Texts
from bench.probe.run.gateway.subject import Subject
from bench.run.openai.blotting import MASKS, SHORTEST, blotted, lower_forms

ORDINARY = re.compile(
    r"(LC_.*|XDG_.*|LANG|LANGUAGE|PATH|PWD|OLDPWD|HOME|SHELL|TERM|COLORTERM|DEBIAN_FRONTEND|USER|LOGNAME|HOSTNAME|PYTHON.*|VIRTUAL_ENV.*)"
)
"""Variables of every shell, which hold words that any output can have."""
NAMED = re.compile(r"key|token|secret|passw|auth|cookie|credential", re.IGNORECASE)
"""The names of words and parameters whose values are secrets."""
ASSIGNED = re.compile(r"(\w{1,40})\s?=\s?('[^']*+'|[^\s;&']++)")
"""A name and its value in a connection's address, such as `password=...`."""
LONGEST = 10_000


class Secrets:
    """Values that are removed from texts, the longest value first."""

    def __init__(self, values: Iterable[str]):
        self._values = sorted({value for value in values if len(value) >= SHORTEST}, key=lambda value: (-len(value), value))
        self._beginnings = {form[:SHORTEST] for value in self._values for form in lower_forms(value)}

    @classmethod
    def of(cls, subject: Subject, environment: Mapping[str, str], addresses: Iterable[str] = ()) -> Secrets:
        """Return the secrets of a subject.

        Args:
            subject: What is probed.
            environment: The owner's own variables.
            addresses: The addresses of its stores.
        """
        return cls(_values(subject, environment, addresses))

    def blot(self, text: str) -> str:
        """Return the text without the secrets."""
        if self._may_be_in(text.lower()):
            for value in self._values:
                text = blotted(text, value)
        return text

    def _may_be_in(self, text: str) -> bool:
        """Return whether a lower-case text has the beginning of a secret, or a mask; a quick check, as most texts have none."""
        last = len(text) - SHORTEST + 1
        return last > 0 and (
            any(text[at : at + SHORTEST] in self._beginnings for at in range(last)) or any(mask in text for mask in MASKS)
        )

    def blot_all(self, value: Any, texts: Mapping[str, str], into: Texts) -> Any:
        """Return a value of a record without the secrets. A digest that stands among `texts` becomes the digest of the text
        without secrets, which is kept in `into`."""
        if isinstance(value, str):
            return into.keep(self.blot(texts[value])) if value in texts else self.blot(value)
        if isinstance(value, Mapping):
            return {self.blot(name): self.blot_all(inner, texts, into) for name, inner in value.items()}
        if isinstance(value, tuple | list):
            return tuple(self.blot_all(inner, texts, into) for inner in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
            return type(value)(**{name: self.blot_all(inner, texts, into) for name, inner in fields.items()})
        return value


def _values(subject: Subject, environment: Mapping[str, str], addresses: Iterable[str]) -> Iterator[str]:
    yield from (value for name, value in environment.items() if not ORDINARY.fullmatch(name) and not _is_path(value))
    yield from subject.agent.environment.values()
    words = [subject.agent.start, subject.agent.resume]
    urls = [*addresses, *environment.values(), *subject.agent.environment.values()]
    for config in subject.configs:
        for server in config.servers:
            yield from (value for value in server.environment.values() if not _is_path(value))
            yield from server.headers.values()
            yield from (part for value in server.headers.values() for part in re.split(r"[\s;,=]+", value))
            words.append(server.command)
            urls.append(server.url)
    urls += [service.url for service in subject.services]
    words += [service.command for service in subject.services]
    if subject.model:
        urls.append(subject.model.url)
    for command in words:
        yield from _in_words(command)
        urls += command
    for url in urls:
        yield from _in_url(url)


def _is_path(value: str) -> bool:
    """Return whether a value names an existing path or several existing paths, as PYENV_ROOT does."""
    return all(os.path.isabs(part) and os.path.exists(part) for part in value.split(os.pathsep))  # noqa: PTH110, PTH117  NUL


def _in_words(command: Iterable[str]) -> Iterator[str]:
    """Yield the secret values of options such as `--api-key VALUE` and `--api-key=VALUE`."""
    before = ""
    for word in command:
        name, _, value = word.partition("=")
        if value and NAMED.search(name):
            yield value
        elif before.startswith("-") and NAMED.search(before):
            yield word
        before = word


def _in_url(url: str) -> Iterator[str]:
    """Yield the password of an address and the values of its secret parameters. A DSN that consists of words is read too."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return
    if password and parts.scheme:
        yield password
        yield unquote(password)
        yield f"{parts.username}:{password}"
    if parts.scheme:
        yield from (value for name, value in parse_qsl(parts.query) if NAMED.search(name))
    for name, value in ASSIGNED.findall(url[:LONGEST]):
        if NAMED.search(name):
            yield value.strip("'")
