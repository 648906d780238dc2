"""A packet is read as a refusal only if it is one. RFC 791, 8200 and 9293 lay packets out."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.box.refusals import advice, refused_address

ADDRESSES = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str)
PORTS = st.integers(1, 2**16 - 1)


def packet(protocol: int, source: str, to: str, content: bytes) -> bytes:
    ours, theirs = ip_address(source).packed, ip_address(to).packed
    if len(ours) == 4:
        return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(content), 0, 0, 64, protocol, 0) + ours + theirs + content
    return struct.pack("!IHBB", 6 << 28, len(content), protocol, 64) + ours + theirs + content


def tcp(port: int, flags: int, sequence: int = 0) -> bytes:
    return struct.pack("!HHIIBBHHH", port, 4000, sequence, 1, 5 << 4, flags, 0, 0, 0)


@given(ADDRESSES, PORTS)
def test_a_reset_that_answers_a_first_packet_tells_the_address_and_the_port(address: str, port: int) -> None:
    assert refused_address(packet(6, address, address, tcp(port, 0x14))) == (address, port)


@given(ADDRESSES, PORTS)
def test_an_unreachable_port_tells_where_a_datagram_was_to_go(address: str, port: int) -> None:
    sent = packet(17, address, address, struct.pack("!HHHH", 4000, port, 8, 0))
    protocol, kind, code = (58, 1, 4) if ":" in address else (1, 3, 3)
    assert refused_address(packet(protocol, address, address, struct.pack("!BBHI", kind, code, 0, 0) + sent)) == (address, port)


@pytest.mark.parametrize(("flags", "sequence"), [(0x02, 0), (0x12, 7), (0x10, 7), (0x11, 7), (0x04, 7), (0x14, 7)], ids=str)
def test_other_packets_of_a_connection_are_no_refusals(flags: int, sequence: int) -> None:
    assert refused_address(packet(6, "192.0.2.1", "192.0.2.1", tcp(443, flags, sequence))) is None


@given(st.binary(max_size=100))
def test_no_bytes_break_the_reader(content: bytes) -> None:
    for protocol in (1, 6, 17, 58):
        refused_address(packet(protocol, "192.0.2.1", "192.0.2.1", content))
    refused_address(content)


@pytest.mark.parametrize(
    ("name", "port", "line"),
    [
        ("api.example.com", 443, 'remote = ["api.example.com"]'),
        ("localhost", 11434, '[model] url = "http://localhost:11434/v1"'),
        ("db", 5432, '[[store]] postgres = "postgresql://db:5432/DATABASE"'),
        ("cache", 6379, 'no witness reads Redis; let it be used for real, and not be reset, by: remote = ["cache:6379"]'),
        ("shop", 8000, 'url = "http://shop:8000"'),
        ("2001:db8::1", 8000, 'remote = ["[2001:db8::1]:8000"]'),
    ],
)
def test_the_line_to_write_fits_what_usually_listens_at_the_port(name: str, port: int, line: str) -> None:
    assert line in advice(name, port)
