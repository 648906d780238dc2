"""Refused connections in a closed network: reads the address and port from the packet of a refusal, and advises the owner."""

from __future__ import annotations

import struct
from ipaddress import ip_address

_TCP, _UDP, _ICMP, _ICMP6 = 6, 17, 1, 58
_NO_PORT, _NO_PORT6 = (_ICMP, 3, 3), (_ICMP6, 1, 4)
"""ICMP's protocol, type and code for a port at which nobody listens."""
_RST_AND_ACK = 0x14
"""TCP's flags RST and ACK. A connection that was never made is refused with the sequence number 0."""
NETWORK_DOOR = "network"
"""The name of the door under which refusals are recorded."""
MAIL_PORTS, MODEL_PORTS = (25, 465, 587, 1025, 2525), {11434: "Ollama"}
DATABASE_PORTS = {3306: "MySQL", 5432: "PostgreSQL", 6379: "Redis", 9092: "Kafka", 27017: "MongoDB"}
"""The ports of mail servers, and the servers that usually listen at a port: of models and of databases."""


def advice(name: str, port: int) -> str:
    """Return what the owner can write into `probe.toml` about a refused connection."""
    address = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    if port == 5432:
        return f'if it is a store, name it: [[store]] postgres = "postgresql://{address}/DATABASE"'
    if port in MODEL_PORTS:
        return f'if {MODEL_PORTS[port]} is its model, name it: [model] url = "http://{address}/v1"'
    if port in DATABASE_PORTS:
        return f'no witness reads {DATABASE_PORTS[port]}; let it be used for real, and not be reset, by: remote = ["{address}"]'
    if port in MAIL_PORTS:
        return f'if mail is to be caught there and compared: [[store]] mail = "{address}"'
    if port in (80, 443):
        return f'if it may be called for real: remote = ["{name}"]'
    return f'if it is a service: [[service]] name = "NAME", url = "http://{address}"; if it is none: remote = ["{address}"]'


def refused_address(packet: bytes) -> tuple[str, int] | None:
    """Return the address and port that a packet reports as refused; None if it reports none."""
    protocol, source, _, content = _content_of(packet)
    if protocol == _TCP and len(content) >= 20:
        port, _, sequence, _, _, flags = struct.unpack_from("!HHIIBB", content)
        return (source, port) if flags & _RST_AND_ACK == _RST_AND_ACK and not sequence else None
    if (protocol, *content[:2]) in (_NO_PORT, _NO_PORT6):
        protocol, _, destination, content = _content_of(content[8:])
        if protocol == _UDP and len(content) >= 4:
            return destination, struct.unpack_from("!H", content, 2)[0]
    return None


def _content_of(packet: bytes) -> tuple[int, str, str, bytes]:
    """Return a packet's protocol, source, destination and content; protocol 0 if it is no IP packet."""
    version, length = packet[0] >> 4 if packet else 0, len(packet)
    if version == 4 and length >= 20:
        size = (packet[0] & 15) * 4
        return packet[9], str(ip_address(packet[12:16])), str(ip_address(packet[16:20])), packet[size:]
    if version == 6 and length >= 40:
        return packet[6], str(ip_address(packet[8:24])), str(ip_address(packet[24:40])), packet[40:]
    return 0, "", "", b""
