"""How a command that takes long is stopped: by Ctrl-C, or by a SIGTERM of whoever runs it, keeping what is recorded."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """In a running event loop, within a `with`: the first of these signals calls `then`; from then on a second ends the process
    at once, whatever is at work: nothing waits for a thread, and no handler of Python's is run.

    A command that was begun in the background inherits that SIGINT is ignored, and listens to it here all the same.
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


def exit_code(by: signal.Signals) -> int:
    """What a shell reports of a process that this signal ended."""
    return 128 + by


def _let_go() -> None:
    for signal_ in STOPPING:
        asyncio.get_running_loop().remove_signal_handler(signal_)
