"""The resolver of a closed network: it gives each name an address of its own, so that a connection later tells the name.

The addresses are of the block that is set apart for tests of networks (RFC 2544), and a name has the same in each run. No
question is passed on to anybody. https://www.rfc-editor.org/rfc/rfc1035#section-4
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from ipaddress import IPv4Address

BLOCK, SIZE = int(IPv4Address("198.18.0.0")), 2**17
LOOPBACK = "127.0.0.1"
LONGEST_NAME, MOST_NAMES = 253, 10_000
SECONDS = 60
"""How long an answer may be kept."""
_ADDRESS, _INTERNET = 1, 1
_IS_ANSWER, _MAY_RECURSE, _OF_QUESTION, _MALFORMED, _FAILED = 0x8000, 0x0080, 0x7900, 1, 2


class NameTable:
    """The names that were asked for, or that are declared, and their addresses."""

    def __init__(self) -> None:
        self._names = dict[str, str]()
        self._addresses = dict[str, str]()

    def address_of(self, name: str) -> str:
        """Return the address of a name, of any case."""
        name = name.rstrip(".").lower()
        if name == "localhost" or name.endswith(".localhost"):
            return LOOPBACK
        if name not in self._addresses:
            at = int.from_bytes(blake2b(name.encode(), digest_size=8).digest())
            while (address := str(IPv4Address(BLOCK + 1 + at % (SIZE - 2)))) in self._names:
                at += 1
            self._names[address], self._addresses[name] = name, address
        return self._addresses[name]

    def name_of(self, address: str) -> str:
        """Return the name that has an address; "" if none has it."""
        return self._names.get(address, "")

    def answer(self, asked: bytes) -> bytes:
        """Return the answer to a question in the form of DNS: a name's IPv4 address, and for other kinds of records that there
        are none. b"" for what is no question. Once there are `MOST_NAMES`, the address of another name is refused."""
        if len(asked) < 12 or asked[2] & 0x80:
            return b""
        number, flags, questions = struct.unpack_from("!HHH", asked)
        flags = _IS_ANSWER | _MAY_RECURSE | flags & _OF_QUESTION
        name, end = _name_in(asked)
        if questions != 1 or not name or len(asked) < end + 4 or flags & 0x7800:
            return struct.pack("!6H", number, flags | _MALFORMED, 0, 0, 0, 0)
        kind, of = struct.unpack_from("!HH", asked, end)
        question, records = asked[12 : end + 4], b""
        if (kind, of) == (_ADDRESS, _INTERNET):
            if len(self._names) >= MOST_NAMES and name.rstrip(".").lower() not in self._addresses:
                return struct.pack("!6H", number, flags | _FAILED, 1, 0, 0, 0) + question
            address = IPv4Address(self.address_of(name)).packed
            records = struct.pack("!HHHIH", 0xC00C, _ADDRESS, _INTERNET, SECONDS, len(address)) + address
        return struct.pack("!6H", number, flags, 1, bool(records), 0, 0) + question + records


def has_failed(answer: bytes) -> bool:
    """Return whether an answer refuses a name because there are too many."""
    return len(answer) > 3 and answer[3] & 15 == _FAILED


def is_name(name: str) -> bool:
    """Return whether a host can have this name."""
    return len(name) <= LONGEST_NAME and all(letter.isascii() and (letter.isalnum() or letter in "-_.") for letter in name)


def _name_in(asked: bytes) -> tuple[str, int]:
    """Return the name in a question, and where it ends; "" if there is none that a host can have."""
    at, labels = 12, list[str]()
    while at < len(asked) and (size := asked[at]):
        if size > 63 or at + size >= len(asked):
            return "", at
        labels.append(asked[at + 1 : at + 1 + size].decode("latin-1"))
        at += 1 + size
    name = ".".join(labels)
    return (name if is_name(name) else ""), at + 1
