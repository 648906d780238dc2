"""What all tests of the package share."""

from __future__ import annotations

import signal
from collections.abc import Generator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_signal_is_ignored_below() -> Generator[None]:
    """A process that a test starts hears Ctrl-C also where `nohup` or a script's background ignores it: a new process inherits
    an ignored signal, and no handler."""
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_ignored:
        signal.signal(signal.SIGINT, lambda *_: None)
    yield
    if is_ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
