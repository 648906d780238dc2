"""The stop of a long command, which keeps the recorded data: by Ctrl-C, by a SIGTERM from another process, or by a SIGHUP
when its terminal is closed."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """A context in which the first signal of STOP_SIGNALS calls `on_stop`. `loop` is the running event loop. A second signal
    ends the process at once, without waiting for threads or for Python's signal handlers.

    A command that was started in the background inherits an ignored SIGINT. Inside the context it is heard all the same. A
    SIGHUP that `nohup` ignores stays ignored.
    """

    def __init__(self, loop: AbstractEventLoop, on_stop: Callable[[], object]):
        self._loop, self._on_stop = loop, on_stop
        self.by: signal.Signals | None = None

    def __enter__(self) -> Stop:
        self._former_handlers = {number: signal.getsignal(number) for number in _heard_signals()}
        for number in self._former_handlers:
            self._loop.add_signal_handler(number, self._ask_to_stop, number)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.by is None:
            self._remove_handlers()
            for number, handler in self._former_handlers.items():
                signal.signal(number, handler)

    def _ask_to_stop(self, by: signal.Signals) -> None:
        """Handle the first signal: call `on_stop`, and let the next signal have its default effect."""
        self.by = by
        self._remove_handlers()
        for number in self._former_handlers:
            signal.signal(number, signal.SIG_DFL)
        _leave_closed_terminal()
        self._on_stop()

    def _remove_handlers(self) -> None:
        """Remove the handlers of the event loop."""
        for number in self._former_handlers:
            self._loop.remove_signal_handler(number)


class AsCtrlC:
    """A context in which SIGTERM and SIGHUP act like Ctrl-C. A second SIGTERM ends the process at once.

    by   the signal that asked to stop; SIGINT if no other did
    """

    def __init__(self) -> None:
        self.by = signal.SIGINT

    def __enter__(self) -> AsCtrlC:
        others = [number for number in _heard_signals() if number != signal.SIGINT]
        self._former_handlers = {number: signal.signal(number, self._ask_to_stop) for number in others}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM or SIGHUP by calling the handler of SIGINT. The next such signal has its default effect."""
        self.by = signal.Signals(number)
        for other in self._former_handlers:
            signal.signal(other, signal.SIG_DFL)
        _leave_closed_terminal()
        interrupt = signal.getsignal(signal.SIGINT)
        (interrupt if callable(interrupt) else signal.default_int_handler)(signal.SIGINT, frame)


@contextmanager
def presses_of_ctrl_c() -> Iterator[list[int]]:
    """Distinguish a Ctrl-C in the block from a KeyboardInterrupt that code of another package raises. The list gets an item
    for each Ctrl-C. It remains empty if the present handler raises no KeyboardInterrupt."""
    presses: list[int] = []

    def press(number: int, _: FrameType | None) -> None:
        presses.append(number)
        raise KeyboardInterrupt

    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not raises or threading.current_thread() is not threading.main_thread():
        yield presses
        return
    signal.signal(signal.SIGINT, press)
    try:
        yield presses
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_code(by: signal.Signals) -> int:
    """Return the exit code that a shell reports for a process that this signal ended."""
    return 128 + by


def _heard_signals() -> list[signal.Signals]:
    """Return the signals of STOP_SIGNALS, without SIGHUP if it is ignored."""
    return [number for number in STOP_SIGNALS if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]


def _leave_closed_terminal() -> None:
    """Redirect the output for a closed terminal to the null device, because each write would fail."""
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
