"""The DNS resolver of a closed network: it gives each name its own address, so that the address of a later connection
identifies the name.

The addresses are from the block for network tests (RFC 2544), and a name has the same address in each run. No query is
forwarded. https://www.rfc-editor.org/rfc/rfc1035#section-4
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from ipaddress import IPv4Address

FIRST_ADDRESS, ADDRESS_COUNT = int(IPv4Address("198.18.0.0")), 2**17
LOOPBACK = "127.0.0.1"
MAX_NAME_CHARS, MAX_NAMES = 253, 10_000
ANSWER_TTL_S = 60
"""How long a client may cache an answer."""
_ADDRESS, _INTERNET = 1, 1
_IS_ANSWER, _MAY_RECURSE, _QUESTION_FLAGS, _MALFORMED, _FAILED = 0x8000, 0x0080, 0x7900, 1, 2


class NameTable:
    """The names that were resolved or declared, and their addresses."""

    def __init__(self) -> None:
        self._names = dict[str, str]()
        self._addresses = dict[str, str]()

    def address_of(self, name: str) -> str:
        """Return the address of a name; a new name gets the next free address after its digest. Upper and lower case are
        equal."""
        name = name.rstrip(".").lower()
        if name == "localhost" or name.endswith(".localhost"):
            return LOOPBACK
        if name not in self._addresses:
            number = int.from_bytes(blake2b(name.encode(), digest_size=8).digest())
            while (address := str(IPv4Address(FIRST_ADDRESS + 1 + number % (ADDRESS_COUNT - 2)))) in self._names:
                number += 1
            self._names[address], self._addresses[name] = name, address
        return self._addresses[name]

    def name_of(self, address: str) -> str:
        """Return the name with this address; "" if there is none."""
        return self._names.get(address, "")

    def answer(self, query: bytes) -> bytes:
        """Return the DNS response to a query: a name's IPv4 address, or no record for other types. b"" if the bytes are no
        query. Beyond `MAX_NAMES`, a new name is refused."""
        if len(query) < 12 or query[2] & 0x80:
            return b""
        number, flags, questions = struct.unpack_from("!HHH", query)
        flags = _IS_ANSWER | _MAY_RECURSE | flags & _QUESTION_FLAGS
        name, end = _name_in(query)
        if questions != 1 or not name or len(query) < end + 4 or flags & 0x7800:
            return struct.pack("!6H", number, flags | _MALFORMED, 0, 0, 0, 0)
        record_type, record_class = struct.unpack_from("!HH", query, end)
        question, records = query[12 : end + 4], b""
        if (record_type, record_class) == (_ADDRESS, _INTERNET):
            if len(self._names) >= MAX_NAMES and name.rstrip(".").lower() not in self._addresses:
                return struct.pack("!6H", number, flags | _FAILED, 1, 0, 0, 0) + question
            address = IPv4Address(self.address_of(name)).packed
            records = struct.pack("!HHHIH", 0xC00C, _ADDRESS, _INTERNET, ANSWER_TTL_S, len(address)) + address
        return struct.pack("!6H", number, flags, 1, bool(records), 0, 0) + question + records


def has_failed(answer: bytes) -> bool:
    """Return whether a DNS response refuses a name because there are too many."""
    return len(answer) > 3 and answer[3] & 15 == _FAILED


def is_name(name: str) -> bool:
    """Return whether a text is a valid host name."""
    return len(name) <= MAX_NAME_CHARS and all(letter.isascii() and (letter.isalnum() or letter in "-_.") for letter in name)


def _name_in(query: bytes) -> tuple[str, int]:
    """Return the name in a query, and the position after it; "" if it is no valid host name."""
    position, labels = 12, list[str]()
    while position < len(query) and (size := query[position]):
        if size > 63 or position + size >= len(query):
            return "", position
        labels.append(query[position + 1 : position + 1 + size].decode("latin-1"))
        position += 1 + size
    name = ".".join(labels)
    return (name if is_name(name) else ""), position + 1
