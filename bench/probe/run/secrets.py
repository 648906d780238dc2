"""Finds the values that no output of a probe may contain, and removes them.

Secrets are values in the owner's files and variables, texts in the known format of a key, and values of arguments with the
name of a secret. No other module decides what is secret.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from bench.common.digests import Texts
from bench.common.errors import ConfigError
from bench.common.files import content_of
from bench.probe.run.box.loading import loader_of
from bench.probe.run.gateway.subject import Subject
from bench.wire.blotting import BLOT, MASKS, MIN_KEY_CHARS, blot, lower_forms

ORDINARY = re.compile(
    r"(LC_.*|XDG_.*|LANG|LANGUAGE|PATH|PWD|OLDPWD|HOME|SHELL|TERM|COLORTERM|DEBIAN_FRONTEND|USER|USERNAME|LOGNAME|HOSTNAME|"
    r"NODE_ENV|PYTHON.*|VIRTUAL_ENV.*|_)"
)
"""Variables of every shell, which hold words that any output can have."""
NAMED = re.compile(r"key|token|secret|pass|pwd|pin\b|sig(?:nature)?\b|auth|cookie|credential", re.IGNORECASE)
"""The names of variables, words and parameters whose values are secrets."""
OF_SHELL = ("PWD", "OLDPWD")
"""Variables in which a shell keeps a folder, and no password."""
NO_PATH = re.compile(r"[\s=,?&]")
"""What the name of a file that is yet to be made does not hold, but a command or an address does."""
LOGIN = re.compile(r"(postgres[\w+]*://)[^/]*@|(//)[^/?#]*@", re.IGNORECASE)
"""The user and the password of an address. Those of PostgreSQL can hold what ends the host of another address."""
PARAMETER = re.compile(rf"([?&][\w-]{{0,40}}(?:{NAMED.pattern})[\w-]{{0,40}}=)[^&#\s]*", re.IGNORECASE)
"""A parameter of an address whose value is a secret."""
SETTING = re.compile(r"(--?[\w-]+|[A-Z][A-Z0-9_]*)=(?![\d.:]{1,5}$)[^\s;|&$`()<>]+")
VALUE = re.compile(r"(?![\d.:]{1,5}$)[^\s;|&$`()<>]+")
ADDRESS = re.compile(r"(?:--?[\w-]+=|[A-Z][A-Z0-9_]*=)?[\w+.-]+://[^\s;|`()<>&?#]*(?:[?#][^\s;|`()<>]*)?")
"""An option with its value, a value and an address, in which no command of a shell can hide. A short number is no
value: `--max-tokens 4000` holds no secret."""
LOADED = frozenset(("exec", "x", "run", "run-script", "tool"))
"""Words of a loader's command that stand before what it loads."""
ARGUMENT = re.compile(
    r"(?:\w*_)?(?:pass(?:word|wd|phrase)|pwd|secret(?:_key)?|credentials?|authorization|(?:api|access|private|signing)_?key|"
    r"(?<!page_)(?<!next_)(?<!client_)(?<!request_)(?<!continuation_)(?<!idempotency_)token)"
)
"""The names of arguments whose values are secrets. The key by which a tool knows a repeated call is none."""
KNOWN = re.compile(
    r"(?<![\w-])(?:[prs]k_(?:live|test)_\w{8,}|whsec_\w{16,}|sk-(?=[\w-]*\d)[\w-]{16,}|gh[opsur]_\w{16,}|github_pat_\w{16,}|"
    r"A[KS]IA[0-9A-Z]{12,}|xox[a-z]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{6,}\.eyJ[\w-]{6,}\.[\w-]*)"
)
"""The forms of keys that providers give, and of a JWT."""
PLAIN = re.compile(r"[A-Za-z]+(?:/[A-Za-z.+-]+)?|[\d.:]+")
"""A word or a number, which is no secret unless its name says so."""
ASSIGNED = re.compile(r"(\w{1,40})\s?=\s?('[^']*+'|[^\s;&']++)")
"""A name and its value in a connection's address, such as `password=...`."""
DOTENV = re.compile(r"""^[ \t]*(?:export[ \t]+)?([\w.]+)[ \t]*=[ \t]*("(?:[^"\\]|\\.)*+"|'[^']*+'|[^\n]*+)""", re.MULTILINE)
"""A name and its value in a file `.env`."""
LONGEST_WORD = 12
"""Letters of a word that any text can hold, such as `required`: it is blotted only where an argument has it as its value."""
LONGEST = 10_000
LARGEST_DOTENV = 2**20


def is_secret_name(variable: str) -> bool:
    """Return whether the name of a variable says that its value is secret."""
    return variable not in OF_SHELL and bool(NAMED.search(variable))


def without_login(address: str) -> str:
    """Return an address without user name, password, and the values of its secret parameters."""
    return PARAMETER.sub(rf"\1{BLOT}", LOGIN.sub(r"\1\2", address))


def redacted_command(command: Sequence[str]) -> str:
    """Return a command as a line that a person can judge.

    Only logins and the values of options with the name of a secret are removed. A word that a loader such as npx may take
    for the name of a program is not.
    """
    words, before, may_be_program = list[str](), "", bool(loader_of(command))
    for word in command:
        setting = SETTING.fullmatch(word)
        if setting and NAMED.search(setting[1]):
            shown_word = f"{shlex.quote(setting[1])}={BLOT}"
        elif (
            before.startswith("-")
            and "=" not in before
            and NAMED.search(before)
            and VALUE.fullmatch(word)
            and not may_be_program
        ):
            shown_word = BLOT
        else:
            shown_word = shlex.quote(without_login(word) if ADDRESS.fullmatch(word) else word)
        may_be_program = may_be_program and (not before or word.startswith("-") or word in LOADED)
        words.append(shown_word)
        before = word
    return " ".join(words)


class Secrets:
    """Values that are removed from texts, the longest value first."""

    def __init__(self, values: Iterable[str]):
        self._secret_values, self._beginnings = list[str](), set[str]()
        self._add(values)

    @classmethod
    def of(cls, subject: Subject, environment: Mapping[str, str], addresses: Iterable[str] = ()) -> Secrets:
        """Return the secrets of a subject.

        Args:
            subject: What is probed.
            environment: The owner's own variables.
            addresses: The addresses of its stores.
        """
        return cls(_secret_values(subject, environment, addresses))

    def blot(self, text: str) -> str:
        """Return a text without the secrets."""
        if self._may_occur_in(text.lower()):
            for value in self._secret_values:
                text = blot(text, value)
        return KNOWN.sub(BLOT, text)

    def is_secret_argument(self, name: str, value: str) -> bool:
        """Return whether the value of an argument with this name is secret. If so, it is removed from all later texts."""
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")
        if not ARGUMENT.fullmatch(snake):
            return False
        if len(value) > LONGEST_WORD or not PLAIN.fullmatch(value):
            self._add([value])
        return True

    @contextmanager
    def removed_from_errors(self) -> Iterator[None]:
        """Raise a ConfigError of the block again without the secrets."""
        try:
            yield
        except ConfigError as error:
            raise ConfigError(self.blot(str(error))) from None

    def occurs_in(self, text: str) -> bool:
        """Return whether a secret occurs in a text, in any form."""
        lower = text.lower()
        return bool(KNOWN.search(text)) or any(form in lower for value in self._secret_values for form in lower_forms(value))

    def _add(self, values: Iterable[str]) -> None:
        new = {value for value in values if len(value) >= MIN_KEY_CHARS}.difference(self._secret_values)
        self._secret_values = sorted([*self._secret_values, *new], key=lambda value: (-len(value), value))
        self._beginnings |= {form[:MIN_KEY_CHARS] for value in new for form in lower_forms(value)}

    def _may_occur_in(self, text: str) -> bool:
        """Return whether a lower-case text contains the beginning of a secret, or a mask. This check is quick, since most
        texts contain none."""
        last = len(text) - MIN_KEY_CHARS + 1
        return last > 0 and (
            any(text[at : at + MIN_KEY_CHARS] in self._beginnings for at in range(last)) or any(mask in text for mask in MASKS)
        )

    def blot_all(self, value: Any, texts: Mapping[str, str], kept_texts: Texts) -> Any:
        """Return a value of a record without the secrets. A digest of one of `texts` becomes the digest of the text without
        secrets, which is added to `into`."""
        if isinstance(value, str):
            return kept_texts.keep(self.blot(texts[value])) if value in texts else self.blot(value)
        if isinstance(value, Mapping):
            return {self.blot(name): self.blot_all(inner, texts, kept_texts) for name, inner in value.items()}
        if isinstance(value, tuple | list):
            return tuple(self.blot_all(inner, texts, kept_texts) for inner in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
            return type(value)(**{name: self.blot_all(inner, texts, kept_texts) for name, inner in fields.items()})
        return value


def _secret_values(subject: Subject, environment: Mapping[str, str], addresses: Iterable[str]) -> Iterator[str]:
    """Yield the secret values of a subject."""
    servers = [server for config in subject.configs for server in config.servers]
    words = [subject.agent.start, subject.agent.resume, *(server.command for server in servers)]
    words += [service.command for service in subject.services]
    words += [subject.model.script] if subject.model else []
    variables = [environment, subject.agent.environment, *(server.environment for server in servers)]
    variables += [server.headers for server in servers]
    named_values = [pair for table in variables for pair in table.items()]
    named_values += _in_dotenv(
        {subject.agent.folder, *(_folder_of_word(subject.agent.folder, word) for command in words for word in command)}
    )
    parts = {part for path in (Path.cwd(), subject.agent.folder.resolve(), sys.executable) for part in Path(path).parts}
    for name, value in named_values:
        is_ordinary = bool(ORDINARY.fullmatch(name) or PLAIN.fullmatch(value)) or value in parts
        has_name = is_secret_name(name)
        if not _is_path(value, is_there=has_name) and (has_name or not is_ordinary):
            yield value
    for header in (value for server in servers for value in server.headers.values()):
        yield from (part for part in re.split(r"[\s;,=]+", header) if len(part) > LONGEST_WORD or not PLAIN.fullmatch(part))
    addresses = tuple(addresses)
    urls = [*addresses, *(value for _, value in named_values), *(server.url for server in servers)]
    urls += [service.url for service in subject.services]
    if subject.model:
        urls.append(subject.model.url)
    for command in words:
        yield from _in_words(command)
        urls += command
    for url in urls:
        yield from _in_url(url)
    for address in addresses:
        yield from _in_webhook(address)


def _folder_of_word(agent: Path, word: str) -> Path:
    """Return the folder that a word of a command names, or the folder of the file; else the agent's folder."""
    path = agent / word.rpartition("=")[2]
    with suppress(OSError, ValueError):
        return path if path.is_dir() else path.parent if path.is_file() else agent
    return agent


def _in_dotenv(folders: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the names and values in the `.env*` files of these folders."""
    for path in {path.resolve() for folder in folders for path in folder.glob(".env*")}:
        with suppress(OSError):
            text = content_of(path, LARGEST_DOTENV).decode("utf-8", "surrogateescape")
            for name, value in DOTENV.findall(text):
                yield name, value[1:-1] if value[:1] in ("'", '"') else re.split(r"\s#", value, maxsplit=1)[0].strip()


def _is_path(value: str, *, is_there: bool) -> bool:
    """Return whether a value is a path or several: they exist if `is_there`, else their folders do."""
    parts = value.split(os.pathsep)
    if not is_there and any(NO_PATH.search(os.path.basename(part)) and not os.path.exists(part) for part in parts):  # noqa: PTH110, PTH119
        return False
    folders = [part if is_there else os.path.dirname(part) for part in parts]  # noqa: PTH120  NUL
    return all(os.path.isabs(folder) and os.path.exists(folder) and folder != "/" for folder in folders)  # noqa: PTH110, PTH117


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
    """Yield the password of an address and the values of its secret parameters. A DSN of `name=value` words is read too."""
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


def _in_webhook(address: str) -> Iterator[str]:
    """Yield the parts of a webhook's path and query that are no words: whoever knows them can send messages there."""
    if address.startswith(("http://", "https://")):
        with suppress(ValueError):
            parts = urlsplit(address)
            yield from (part for part in parts.path.split("/") if len(part) > LONGEST_WORD or not PLAIN.fullmatch(part))
            yield from (value for name, value in parse_qsl(parts.query) if len(value) > LONGEST_WORD or NAMED.search(name))
