"""Sockets that record when their bytes were sent and when bytes arrived, even if a busy process reads them late.

On Linux the kernel stamps arriving bytes (SO_TIMESTAMPNS, https://docs.kernel.org/networking/timestamping.html). Elsewhere the
time of reading is used.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Sequence
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

HAS_TIMESTAMPS = sys.platform == "linux"
SO_TIMESTAMPNS = 35
"""The number of SO_TIMESTAMPNS and SCM_TIMESTAMPNS in include/uapi/asm-generic/socket.h; Python has no name for them."""
TIMESPEC = struct.Struct("@ll")
CONTROL_BYTES = socket.CMSG_SPACE(TIMESPEC.size)
ControlMessages = Sequence[tuple[int, int, bytes]]


class TimedSocket(socket.socket):
    """A socket that records the time of its last sent bytes (`sent`) and of its last read bytes (`arrived`), in nanoseconds of
    `time.perf_counter_ns`."""

    def __init__(self, family: int, kind: int, protocol: int):
        super().__init__(family, kind, protocol)
        self.sent = self.arrived = perf_counter_ns()
        if HAS_TIMESTAMPS:
            self.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def send(self, data: ReadableBuffer, flags: int = 0, /) -> int:
        self.sent = perf_counter_ns()  # before sending: the receiver can run first
        return super().send(data, flags)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Read bytes, and record when they arrived."""
        data, control, _, _ = self.recvmsg(size, CONTROL_BYTES, flags)
        self._stamp(control)
        return data

    def recv_into(self, buffer: WriteableBuffer, size: int = 0, flags: int = 0) -> int:
        """Read bytes into a buffer, and record when they arrived. Return their number."""
        room = memoryview(buffer)
        count, control, _, _ = self.recvmsg_into([room[: size or None]], CONTROL_BYTES, flags)
        self._stamp(control)
        return count

    def flight(self) -> tuple[int, int]:
        """Return when the request's last byte was sent and when the response's last byte arrived, for the response that was
        just read, in nanoseconds of `time.perf_counter_ns`."""
        return self.sent, self.arrived

    def _stamp(self, control: ControlMessages) -> None:
        """Set `arrived` from the kernel's timestamp. The kernel's clock can be changed meanwhile, so the time is limited to the
        interval from the sending until now."""
        now = perf_counter_ns()
        stamps = (data for level, kind, data in control if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS))
        age = next((time_ns() - _nanoseconds(stamp) for stamp in stamps), 0)
        self.arrived = min(max(now - age, self.sent), now)


def _nanoseconds(stamp: bytes) -> int:
    """Return the nanoseconds of the kernel's clock in a timestamp."""
    seconds, nanoseconds = TIMESPEC.unpack(stamp)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def timed_socket(address: Any) -> TimedSocket:
    """Return a socket for an address of `socket.getaddrinfo`."""
    family, kind, protocol, *_ = address
    return TimedSocket(family, kind, protocol)
