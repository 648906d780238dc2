"""The messages that an agent sends, as a store: mails, and messages to webhooks. A stand-in accepts them at the host that the
owner named, in the agent's box, and sends none on. Each message is a row.

    [[store]]
    mail = "smtp.example.com:587"     # without a port: 25, 465 and 587
    [[store]]
    webhook = "$SLACK_WEBHOOK"
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default
from pathlib import Path

from pydantic import JsonValue

from bench.common.addresses import host_and_port
from bench.common.digests import digest_of
from bench.common.errors import ConfigError
from bench.probe.run.witness.kinds import StoreKind, StoreSettings
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.store import StoreWithoutOriginal
from bench.record.probe_rows import StoreReading

MAIL_PORTS = (25, 465, 587)
IGNORED_HEADERS = frozenset(("date", "message-id", "mime-version", "content-type", "content-transfer-encoding", "received"))
"""Headers that differ between two equal mails, or that describe only the encoding."""

MAX_MESSAGES, MAX_MESSAGES_CHARS = 10_000, 2**26
"""The most messages that are kept between two resets, and the most characters of all of them together."""
MAX_HEADER_BYTES = 2**16
HEADER = re.compile(rb"(?:^|\r)[!-9;-~]*+:[^\n]*+(?:\n[ \t][^\n]*+)*+", re.MULTILINE)
"""A header with its continuation lines, as a parser of mails may see it."""

OutboxMessage = Mapping[str, JsonValue]
"""Column -> value of a message."""


@dataclass(frozen=True)
class OutboxAddress:
    """The address at which messages are accepted: a host with its ports, and the URL of a webhook."""

    host: str
    ports: tuple[int, ...]
    url: str = ""


class OutboxStore(StoreWithoutOriginal):
    """The messages that an agent has sent since the last reset. The store has no original.

    kind         mail or webhook
    place        the address at which messages are accepted
    reset_count  the number of resets
    """

    def __init__(self, name: str, kind: str, place: OutboxAddress, encoding: Encoding, variables: Mapping[str, str]) -> None:
        self.name, self.kind, self.place, self._encoding = name, kind, place, encoding
        self._variables = variables
        self._messages, self._size, self.reset_count = list[OutboxMessage](), 0, 0

    def add(self, message: OutboxMessage) -> bool:
        """Keep a message. Return False if the store is full."""
        size = len(_as_json(message))
        if len(self._messages) >= MAX_MESSAGES or self._size + size > MAX_MESSAGES_CHARS:
            return False
        self._messages.append(message)
        self._size += size
        return True

    @property
    def environment(self) -> Mapping[str, str]:
        return {name: text.replace("{store}", self.place.url or self.place.host) for name, text in self._variables.items()}

    def reset(self) -> None:
        """Forget all messages."""
        self._messages, self._size, self.reset_count = [], 0, self.reset_count + 1

    def read(self, most: int) -> StoreReading:
        """Return each message as an added row, at most `most` of them."""
        messages, difference_counts = tuple(self._messages), Counter[str]()
        rows = [
            self._encoding.difference(
                self.name, self.kind, (), tuple(message), (None, tuple(map(_cell, message.values()))), difference_counts
            )
            for message in messages
        ]
        digest = digest_of(_as_json(sorted(row.key for row in rows)))
        return StoreReading(digest, tuple(rows[:most]), max(0, len(rows) - most))

    def stamp(self) -> tuple[int, int]:
        """Return the number of resets, and the number of messages."""
        return self.reset_count, len(self._messages)

    def remove(self) -> None:
        """Forget all messages."""
        self.reset()


def mail_of(sender: str, recipients: list[str], raw: bytes) -> OutboxMessage:
    """Return a mail as columns: its envelope, its headers, its text, and digests of its attachments. A mail that is no MIME,
    or has headers longer than `MAX_HEADER_BYTES`, is one text."""
    columns: dict[str, JsonValue] = {"sender": sender, "recipients": _as_json(sorted(recipients))}
    lengths = (len(header[0]) for header in HEADER.finditer(raw))
    if sum(length**2 for length in lengths) > MAX_HEADER_BYTES**2:  # a parser takes a time that grows with the square
        return columns | {"text": raw.decode("utf-8", "replace")}
    try:
        message = message_from_bytes(raw, policy=default)
        columns |= {name.lower(): str(value) for name, value in message.items() if name.lower() not in IGNORED_HEADERS}
        body = message.get_body(("plain", "html"))
        columns["text"] = body.get_content().replace("\r\n", "\n").strip() if body else ""
        attachments = [f"{part.get_filename()} {digest_of(str(part.get_payload()))}" for part in message.iter_attachments()]
        columns |= {"attached": _as_json(attachments)} if attachments else {}
    except Exception:  # the library's parser can raise nearly any exception, also RecursionError
        columns["text"] = raw.decode("utf-8", "replace")
    return columns


def message_of(method: str, path: str, body: JsonValue) -> OutboxMessage:
    """Return a message to a webhook as columns: the members of a JSON object, or the body as text; and the method if it is not
    POST. `path` is "" for the webhook's own."""
    columns: dict[str, JsonValue] = {"path": path} if path else {}
    columns |= {} if method == "POST" else {"method": method}
    return columns | body if isinstance(body, dict) else columns | {"body": body}


def _as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _cell(value: JsonValue) -> object:
    return _as_json(value) if isinstance(value, dict | list) else value


def _make_mail_store(store: StoreSettings, folder: Path, encoding: Encoding) -> OutboxStore:
    """Return the store for a mail server."""
    del folder
    try:
        host, port = host_and_port(f"smtp://{store.where.rpartition('@')[2]}")
    except ValueError:
        host, port = "", 0
    if not host or "/" in store.where:
        raise ConfigError(f"store {store.name!r}: mail is the host of a mail server, such as smtp.example.com:587")
    return OutboxStore(store.name, "mail", OutboxAddress(host, (port,) if port else MAIL_PORTS), encoding, store.variables)


def _make_webhook_store(store: StoreSettings, folder: Path, encoding: Encoding) -> OutboxStore:
    """Return the store for a webhook."""
    del folder
    try:
        host, port = host_and_port(store.where)
    except ValueError:
        host, port = "", 0
    if not (host and port and store.where.startswith(("http://", "https://"))):
        raise ConfigError(f"store {store.name!r}: webhook is an address that begins with https:// or http://")
    return OutboxStore(store.name, "webhook", OutboxAddress(host, (port,), store.where), encoding, store.variables)


def _no_hosts(address: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return no host, since nothing is sent to the address."""
    del address, environment
    return ()


KINDS = tuple(
    StoreKind(name, make, is_address=True, hosts=_no_hosts, needs_box=True)
    for name, make in (("mail", _make_mail_store), ("webhook", _make_webhook_store))
)
