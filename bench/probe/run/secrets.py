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

ORDINARY_VARIABLE = re.compile(
    r"(LC_.*|XDG_.*|LANG|LANGUAGE|PATH|PWD|OLDPWD|HOME|SHELL|TERM|COLORTERM|DEBIAN_FRONTEND|USER|USERNAME|LOGNAME|HOSTNAME|"
    r"NODE_ENV|PYTHON.*|VIRTUAL_ENV.*|_)"
)
"""Matches variables of every shell, whose values are words that any output can contain."""
SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|pin\b|sig(?:nature)?\b|auth|cookie|credential", re.IGNORECASE)
"""Matches the names of variables, options and parameters whose values are secrets."""
FOLDER_VARIABLES = ("PWD", "OLDPWD")
"""Variables in which a shell keeps a folder, although `PWD` looks like a password."""
NO_FILE_NAME = re.compile(r"[\s=,?&]")
"""Matches characters that a command or an address contains, and the name of a file that does not exist yet does not."""
LOGIN = re.compile(r"(postgres[\w+]*://)[^/]*@|(//)[^/?#]*@", re.IGNORECASE)
"""Matches the user and the password of an address. In an address of PostgreSQL they may contain `/`, `?` and `#`."""
SECRET_PARAMETER = re.compile(rf"([?&][\w-]{{0,40}}(?:{SECRET_NAME.pattern})[\w-]{{0,40}}=)[^&#\s]*", re.IGNORECASE)
"""Matches a parameter of an address whose value is a secret."""
OPTION = re.compile(r"(--?[\w-]+|[A-Z][A-Z0-9_]*)=(?![\d.:]{1,5}$)[^\s;|&$`()<>]+")
OPTION_VALUE = re.compile(r"(?![\d.:]{1,5}$)[^\s;|&$`()<>]+")
ADDRESS = re.compile(r"(?:--?[\w-]+=|[A-Z][A-Z0-9_]*=)?[\w+.-]+://[^\s;|`()<>&?#]*(?:[?#][^\s;|`()<>]*)?")
"""These match an option with its value, a value, and an address, in which no command of a shell can hide. A short number is no
value: `--max-tokens 4000` contains no secret."""
LOADER_COMMANDS = frozenset(("exec", "x", "run", "run-script", "tool"))
"""Words in the command of a loader such as `npm` that come before the name of the program that it loads."""
SECRET_ARGUMENT = re.compile(
    r"(?:\w*_)?(?:pass(?:word|wd|phrase)|pwd|secret(?:_key)?|credentials?|authorization|(?:api|access|private|signing)_?key|"
    r"(?<!page_)(?<!next_)(?<!client_)(?<!request_)(?<!continuation_)(?<!idempotency_)token)"
)
"""Matches the names of arguments whose values are secrets. The key by which a tool recognises a repeated call is no secret."""
KNOWN_KEY = re.compile(
    r"(?<![\w-])(?:[prs]k_(?:live|test)_\w{8,}|whsec_\w{16,}|sk-(?=[\w-]*\d)[\w-]{16,}|gh[opsur]_\w{16,}|github_pat_\w{16,}|"
    r"A[KS]IA[0-9A-Z]{12,}|xox[a-z]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{6,}\.eyJ[\w-]{6,}\.[\w-]*)"
)
"""Matches a key in the format of a known provider, and a JWT."""
PLAIN_WORD = re.compile(r"[A-Za-z]+(?:/[A-Za-z.+-]+)?|[\d.:]+")
"""Matches a word or a number, which is no secret unless its name says so."""
DSN_SETTING = re.compile(r"(\w{1,40})\s?=\s?('[^']*+'|[^\s;&']++)")
"""Matches a name and its value in the address of a connection, such as `password=...`."""
DOTENV_LINE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([\w.]+)[ \t]*=[ \t]*("(?:[^"\\]|\\.)*+"|'[^']*+'|[^\n]*+)""", re.MULTILINE
)
"""Matches a name and its value in a file `.env`."""
MAX_WORD_LETTERS = 12
"""The most letters of a word that any text can contain, such as `required`: as the value of an argument it is removed there,
and not from all texts."""
MAX_DSN_CHARS = 10_000
MAX_DOTENV_BYTES = 2**20


def is_secret_name(variable: str) -> bool:
    """Return whether the name of a variable says that its value is secret."""
    return variable not in FOLDER_VARIABLES and bool(SECRET_NAME.search(variable))


def without_login(address: str) -> str:
    """Return an address without user name, password, and the values of its secret parameters."""
    return SECRET_PARAMETER.sub(rf"\1{BLOT}", LOGIN.sub(r"\1\2", address))


def redacted_command(command: Sequence[str]) -> str:
    """Return a command as a line that a person can judge.

    Only logins and the values of options with the name of a secret are removed. A word that a loader such as npx may take
    for the name of a program is not.
    """
    words, before, may_be_program = list[str](), "", bool(loader_of(command))
    for word in command:
        option = OPTION.fullmatch(word)
        if option and SECRET_NAME.search(option[1]):
            shown_word = f"{shlex.quote(option[1])}={BLOT}"
        elif (  # the value of the option before it
            before.startswith("-")
            and "=" not in before
            and SECRET_NAME.search(before)
            and OPTION_VALUE.fullmatch(word)
            and not may_be_program
        ):
            shown_word = BLOT
        else:
            shown_word = shlex.quote(without_login(word) if ADDRESS.fullmatch(word) else word)
        may_be_program = may_be_program and (not before or word.startswith("-") or word in LOADER_COMMANDS)
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
        return KNOWN_KEY.sub(BLOT, text)

    def is_secret_argument(self, name: str, value: str) -> bool:
        """Return whether the value of an argument with this name is secret. If so, and if it is no short plain word, it is
        removed from all later texts."""
        snake_case_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")
        if not SECRET_ARGUMENT.fullmatch(snake_case_name):
            return False
        if len(value) > MAX_WORD_LETTERS or not PLAIN_WORD.fullmatch(value):
            self._add([value])
        return True

    @contextmanager
    def removed_from_errors(self) -> Iterator[None]:
        """Remove the secrets from a ConfigError that the block raises."""
        try:
            yield
        except ConfigError as error:
            raise ConfigError(self.blot(str(error))) from None

    def occurs_in(self, text: str) -> bool:
        """Return whether a secret occurs in a text, in any form."""
        lower = text.lower()
        return bool(KNOWN_KEY.search(text)) or any(
            form in lower for value in self._secret_values for form in lower_forms(value)
        )

    def _add(self, values: Iterable[str]) -> None:
        new = {value for value in values if len(value) >= MIN_KEY_CHARS}.difference(self._secret_values)
        self._secret_values = sorted([*self._secret_values, *new], key=lambda value: (-len(value), value))
        self._beginnings |= {form[:MIN_KEY_CHARS] for value in new for form in lower_forms(value)}

    def _may_occur_in(self, text: str) -> bool:
        """Return whether a lower-case text contains the beginning of a secret, or a mask. This quick check spares most texts
        the search for whole secrets."""
        starts = range(len(text) - MIN_KEY_CHARS + 1)
        has_beginning = any(text[start : start + MIN_KEY_CHARS] in self._beginnings for start in starts)
        return has_beginning or (bool(starts) and any(mask in text for mask in MASKS))

    def blot_all(self, value: Any, texts: Mapping[str, str], kept_texts: Texts) -> Any:
        """Return a value of a record without the secrets.

        Args:
            value: A text, or a value that contains texts.
            texts: Texts by their digests. In the value a digest is replaced by the digest of the text without secrets.
            kept_texts: The collection to which these texts without secrets are added.
        """
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
    """Yield the secret values in a subject: of variables, `.env*` files, headers, commands, and addresses."""
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
    folder_names = {part for path in (Path.cwd(), subject.agent.folder.resolve(), sys.executable) for part in Path(path).parts}
    for name, value in named_values:
        is_ordinary = bool(ORDINARY_VARIABLE.fullmatch(name) or PLAIN_WORD.fullmatch(value)) or value in folder_names
        has_secret_name = is_secret_name(name)
        # a path is no secret, unless its variable has the name of a secret and the path does not exist
        if not _is_path(value, must_exist=has_secret_name) and (has_secret_name or not is_ordinary):
            yield value
    for header in (value for server in servers for value in server.headers.values()):
        yield from (
            part for part in re.split(r"[\s;,=]+", header) if len(part) > MAX_WORD_LETTERS or not PLAIN_WORD.fullmatch(part)
        )
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
    """Return the folder that a word of a command names, or the folder of the file that it names; else the agent's folder."""
    path = agent / word.rpartition("=")[2]
    with suppress(OSError, ValueError):
        if path.is_file():
            return path.parent
        if path.is_dir():
            return path
    return agent


def _in_dotenv(folders: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the names and values in the `.env*` files of these folders."""
    for path in {path.resolve() for folder in folders for path in folder.glob(".env*")}:
        with suppress(OSError):
            text = content_of(path, MAX_DOTENV_BYTES).decode("utf-8", "surrogateescape")
            for name, value in DOTENV_LINE.findall(text):
                yield name, value[1:-1] if value[:1] in ("'", '"') else re.split(r"\s#", value, maxsplit=1)[0].strip()


def _is_path(value: str, *, must_exist: bool) -> bool:
    """Return whether a value is one or several absolute paths. The paths must exist if `must_exist`, else their folders."""
    parts = value.split(os.pathsep)
    if not must_exist and any(NO_FILE_NAME.search(os.path.basename(part)) and not os.path.exists(part) for part in parts):  # noqa: PTH110, PTH119
        return False
    folders = [part if must_exist else os.path.dirname(part) for part in parts]  # noqa: PTH120  NUL
    return all(os.path.isabs(folder) and os.path.exists(folder) and folder != "/" for folder in folders)  # noqa: PTH110, PTH117


def _in_words(command: Iterable[str]) -> Iterator[str]:
    """Yield the secret values of options such as `--api-key VALUE` and `--api-key=VALUE`."""
    before = ""
    for word in command:
        name, _, value = word.partition("=")
        if value and SECRET_NAME.search(name):
            yield value
        elif before.startswith("-") and SECRET_NAME.search(before):
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
        yield from (value for name, value in parse_qsl(parts.query) if SECRET_NAME.search(name))
    for name, value in DSN_SETTING.findall(url[:MAX_DSN_CHARS]):
        if SECRET_NAME.search(name):
            yield value.strip("'")


def _in_webhook(address: str) -> Iterator[str]:
    """Yield the parts of a webhook's path and query that are no words: whoever knows them can send messages there."""
    if address.startswith(("http://", "https://")):
        with suppress(ValueError):
            parts = urlsplit(address)
            yield from (
                part for part in parts.path.split("/") if len(part) > MAX_WORD_LETTERS or not PLAIN_WORD.fullmatch(part)
            )
            yield from (
                value for name, value in parse_qsl(parts.query) if len(value) > MAX_WORD_LETTERS or SECRET_NAME.search(name)
            )
