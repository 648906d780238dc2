"""How a long command is stopped and keeps what is recorded: by Ctrl-C, or by a SIGTERM from another process."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """A context in a running event loop. The first of these signals calls `then`. From then on a second one ends the process at
    once: nothing waits for a thread, and no handler of Python runs.

    A command that was started in the background inherits an ignored SIGINT. Inside the context it is heard all the same.
    """

    def __init__(self, then: Callable[[], object]):
        self._then = then
        self.by: signal.Signals | None = None

    def __enter__(self) -> Stop:
        loop = asyncio.get_running_loop()
        for signal_ in STOPPING:
            loop.add_signal_handler(signal_, self._asked, signal_)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _let_go()

    def _asked(self, by: signal.Signals) -> None:
        self.by = by
        _let_go()
        for signal_ in STOPPING:
            signal.signal(signal_, signal.SIG_DFL)
        self._then()


@contextmanager
def presses_of_ctrl_c() -> Iterator[list[int]]:
    """Tell a Ctrl-C in the block from a KeyboardInterrupt that code of another package raises: the list has an item for each
    Ctrl-C. It stays empty where the present handler raises no KeyboardInterrupt."""
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


def _let_go() -> None:
    for signal_ in STOPPING:
        asyncio.get_running_loop().remove_signal_handler(signal_)
