"""A network with only a loopback interface, to which all addresses are routed: a packet to any address arrives in the network
itself.

No packet leaves the network, since it has no other interface. The probe answers on sockets that are opened in the network: a
socket belongs to the network in which it was opened, even if a process outside uses it.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Literal, TypeVar

from bench.probe.run.box import kernel

SocketKind = Literal["listener", "datagrams", "refusals", "caller"]
"""A TCP listener or a UDP socket at an address, a reader of the network's refusals, or a TCP socket that is not connected."""
SocketPlace = tuple[SocketKind, str, int]
"""A kind, an address as digits, and a port."""
LISTEN_BACKLOG = 128
"""The most connections that wait to be accepted."""
_NEW_LINK, _NEW_ROUTE, _ACKNOWLEDGED, _CREATED = 16, 24, 1 | 4, 1 | 4 | 0x400
_UP, _LOCAL_TABLE, _AT_BOOT, _ON_THIS_HOST, _IS_LOCAL, _OUT_BY = 1, 255, 3, 254, 2, 4
_ALL_PACKETS, _ATTACH_FILTER, _ADDRESSES_OF_DATAGRAMS = 3, 26, 8
# The filter for a reader of refusals, in the kernel's language (code, jump if true, jump if false, value). Of IPv4 and IPv6 it
# accepts TCP's RST with ACK, and ICMP's "unreachable". Without this filter each packet of the network would wake the probe.
_REFUSALS = (
    (0x30, 0, 0, 0),  # which version
    (0x74, 0, 0, 4),
    (0x15, 3, 0, 6),
    (0x30, 0, 0, 9),  # IPv4: which protocol
    (0x15, 10, 0, 1),
    (0x15, 5, 15, 6),
    (0x30, 0, 0, 6),  # IPv6: which protocol
    (0x15, 10, 0, 58),
    (0x15, 0, 12, 6),
    (0x01, 0, 0, 40),  # TCP: where its header begins, and its flags
    (0x05, 0, 0, 1),
    (0xB1, 0, 0, 0),
    (0x50, 0, 0, 13),
    (0x54, 0, 0, 0x14),
    (0x15, 5, 6, 0x14),
    (0xB1, 0, 0, 0),  # ICMP: its type
    (0x50, 0, 0, 0),
    (0x15, 2, 3, 3),
    (0x30, 0, 0, 40),
    (0x15, 0, 1, 1),
    (0x06, 0, 0, 0xFFFF),  # accepted
    (0x06, 0, 0, 0),  # ignored
)
Result = TypeVar("Result")


class LoopbackNetwork:
    """A new network in the user namespace of the calling process. Raises OSError.

    namespace   an open file by which processes enter it
    """

    def __init__(self) -> None:
        self.namespace = _in_new_thread(_make_network)

    def sockets(self, places: Sequence[SocketPlace]) -> list[socket.socket]:
        """Return open sockets in this network. Raises OSError."""

        def sockets() -> list[socket.socket]:
            kernel.enter(self.namespace)
            return [_open_socket(*place) for place in places]

        return _in_new_thread(sockets)


def _in_new_thread(work: Callable[[], Result]) -> Result:
    """Call a function in a new thread, and return its result or raise its exception. A thread can enter another network while
    the other threads stay in theirs."""
    results, errors = list[Result](), list[Exception]()

    def run() -> None:
        try:
            kernel.unshare(kernel.OWN_WORKING_FOLDER)  # otherwise the process could enter no mounts while this thread exists
            results.append(work())
        except Exception as error:
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _make_network() -> int:
    """Make a network with a loopback interface that receives all packets, in this thread. Return an open file of the network's
    namespace."""
    kernel.unshare(kernel.NEW_NETWORK)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:  # 0: routes and links
        index = socket.if_nametoindex("lo")
        _configure(link, _NEW_LINK, _ACKNOWLEDGED, struct.pack("=BxHiII", 0, 0, index, _UP, _UP))
        for family in (socket.AF_INET, socket.AF_INET6):
            table = (family, 0, 0, 0, _LOCAL_TABLE, _AT_BOOT, _ON_THIS_HOST, _IS_LOCAL, 0)
            try:
                _configure(link, _NEW_ROUTE, _CREATED, struct.pack("=8BI", *table) + struct.pack("=HHi", 8, _OUT_BY, index))
            except OSError:
                if family == socket.AF_INET:  # a kernel can be without IPv6
                    raise
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _configure(link: socket.socket, kind: int, flags: int, body: bytes) -> None:
    """Send a netlink message to the kernel. Raises OSError if the kernel refuses it."""
    link.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
    (number,) = struct.unpack_from("=i", link.recv(4096), 16)
    if number:
        raise OSError(-number, f"{os.strerror(-number)} (loopback in the box)")


def _open_socket(kind: SocketKind, address: str, port: int) -> socket.socket:
    """Return a socket of this kind. Raises OSError."""
    if kind == "refusals":
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL_PACKETS))
        lines = b"".join(struct.pack("=HBBI", *line) for line in _REFUSALS)
        _set_filter(opened, lines, len(_REFUSALS))
        opened.bind(("lo", _ALL_PACKETS))
        return opened
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_DGRAM if kind == "datagrams" else socket.SOCK_STREAM)
    try:
        if kind != "caller":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.bind((address, port))
        if kind == "listener":
            opened.listen(LISTEN_BACKLOG)
        elif kind == "datagrams":
            opened.setsockopt(socket.IPPROTO_IP, _ADDRESSES_OF_DATAGRAMS, 1)
    except OSError as error:
        opened.close()
        raise OSError(error.errno or errno.EIO, f"{error.strerror} (port {port} of {address} in the box)") from error
    return opened


def _set_filter(opened: socket.socket, lines: bytes, count: int) -> None:
    """Attach a packet filter to a socket."""
    import ctypes  # noqa: PLC0415  as `kernel` does

    program = ctypes.create_string_buffer(lines)
    opened.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("@HP", count, ctypes.addressof(program)))
