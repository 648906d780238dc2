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

from bench.common.digests import digest_of
from bench.common.errors import ConfigError
from bench.probe.run.addresses import host_and_port
from bench.probe.run.witness.kinds import StoreKind, StoreSettings
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.store import StoreWithoutOriginal
from bench.record.probe_rows import StoreReading

MAIL_PORTS = (25, 465, 587)
LEFT_OUT = frozenset(("date", "message-id", "mime-version", "content-type", "content-transfer-encoding", "received"))
"""What programs that send mails make anew for each, or what says nothing of it."""

MOST_KEPT, LARGEST_KEPT = 10_000, 2**26
"""Messages that are kept between two resets, and the characters of all of them."""
LONGEST_HEADER = 2**16
HEADER = re.compile(rb"(?:^|\r)[!-9;-~]*+:[^\n]*+(?:\n[ \t][^\n]*+)*+", re.MULTILINE)
"""What a reader of mails may take for a header, with its further lines."""

OutboxMessage = Mapping[str, JsonValue]
"""What was sent: columns -> values."""


@dataclass(frozen=True)
class OutboxPlace:
    """The address at which messages are accepted: a host with its ports, and the URL of a webhook."""

    host: str
    ports: tuple[int, ...]
    url: str = ""


class OutboxStore(StoreWithoutOriginal):
    """The messages that an agent has sent since the last reset. It has no original.

    kind   mail or webhook
    place  the address at which they are accepted
    resets how often the store was reset
    """

    def __init__(self, name: str, kind: str, place: OutboxPlace, encoding: Encoding, variables: Mapping[str, str]) -> None:
        self.name, self.kind, self.place, self._encoding = name, kind, place, encoding
        self._variables = variables
        self._sent, self._size, self.resets = list[OutboxMessage](), 0, 0

    def add(self, message: OutboxMessage) -> bool:
        """Keep a message. Return whether there was room for it."""
        size = len(_as_json(message))
        if len(self._sent) >= MOST_KEPT or self._size + size > LARGEST_KEPT:
            return False
        self._sent.append(message)
        self._size += size
        return True

    @property
    def environment(self) -> Mapping[str, str]:
        return {name: text.replace("{store}", self.place.url or self.place.host) for name, text in self._variables.items()}

    def reset(self) -> None:
        """Forget all messages."""
        self._sent, self._size, self.resets = [], 0, self.resets + 1

    def read(self, most: int) -> StoreReading:
        """Return a row for each message."""
        sent, alike = tuple(self._sent), Counter[str]()
        rows = [
            self._encoding.difference(
                self.name, self.kind, (), tuple(message), (None, tuple(map(_cell, message.values()))), alike
            )
            for message in sent
        ]
        digest = digest_of(_as_json(sorted(row.key for row in rows)))
        return StoreReading(digest, tuple(rows[:most]), max(0, len(rows) - most))

    def stamp(self) -> tuple[int, int]:
        """Return the number of resets, and the number of messages."""
        return self.resets, len(self._sent)

    def remove(self) -> None:
        """Forget all messages."""
        self.reset()


def mail_of(sender: str, recipients: list[str], raw: bytes) -> OutboxMessage:
    """Return a mail as columns: its envelope, its headers, its text, and digests of its attachments. A mail that is no MIME,
    or has headers longer than `LONGEST_HEADER`, is one text."""
    columns: dict[str, JsonValue] = {"sender": sender, "recipients": _as_json(sorted(recipients))}
    lengths = (len(header[0]) for header in HEADER.finditer(raw))
    if sum(length**2 for length in lengths) > LONGEST_HEADER**2:  # a header's reader takes a time that grows with the square
        return columns | {"text": raw.decode("utf-8", "replace")}
    try:
        message = message_from_bytes(raw, policy=default)
        columns |= {name.lower(): str(value) for name, value in message.items() if name.lower() not in LEFT_OUT}
        body = message.get_body(("plain", "html"))
        columns["text"] = body.get_content().replace("\r\n", "\n").strip() if body else ""
        if attached := [f"{part.get_filename()} {digest_of(str(part.get_payload()))}" for part in message.iter_attachments()]:
            columns["attached"] = _as_json(attached)
    except Exception:  # what the library's reader raises is endless: a RecursionError too
        columns["text"] = raw.decode("utf-8", "replace")
    return columns


def message_of(method: str, path: str, body: JsonValue) -> OutboxMessage:
    """Return a message to a webhook as columns: the members of a JSON object, or the body as text. `path` is "" for the
    webhook's own."""
    columns: dict[str, JsonValue] = {"path": path} if path else {}
    columns |= {} if method == "POST" else {"method": method}
    return columns | body if isinstance(body, dict) else columns | {"body": body}


def _as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _cell(value: JsonValue) -> object:
    return _as_json(value) if isinstance(value, dict | list) else value


def _mail(store: StoreSettings, folder: Path, encoding: Encoding) -> OutboxStore:
    """Return the store for a mail server."""
    del folder
    try:
        host, port = host_and_port(f"smtp://{store.where.rpartition('@')[2]}")
    except ValueError:
        host, port = "", 0
    if not host or "/" in store.where:
        raise ConfigError(f"store {store.name!r}: mail is the host of a mail server, such as smtp.example.com:587")
    return OutboxStore(store.name, "mail", OutboxPlace(host, (port,) if port else MAIL_PORTS), encoding, store.variables)


def _webhook(store: StoreSettings, folder: Path, encoding: Encoding) -> OutboxStore:
    """Return the store for a webhook."""
    del folder
    try:
        host, port = host_and_port(store.where)
    except ValueError:
        host, port = "", 0
    if not (host and port and store.where.startswith(("http://", "https://"))):
        raise ConfigError(f"store {store.name!r}: webhook is an address that begins with https:// or http://")
    return OutboxStore(store.name, "webhook", OutboxPlace(host, (port,), store.where), encoding, store.variables)


def _no_hosts(address: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return no host, since nothing is sent there."""
    del address, environment
    return ()


KINDS = tuple(
    StoreKind(name, make, is_address=True, hosts=_no_hosts, needs_box=True)
    for name, make in (("mail", _mail), ("webhook", _webhook))
)
