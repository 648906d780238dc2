"""One fork server for all workers of a run of all tests.

`multiprocessing` starts a fork server in each process that forks by one. What ours loads first takes three seconds of processor
time. So the process that starts the workers starts it, and the workers join it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from multiprocessing import forkserver, resource_tracker

SERVER = vars(forkserver)["_forkserver"]
forkserver.set_forkserver_preload(["tests.support.preloaded"])


@cache
def started() -> dict[str, str | bytes]:
    """Start the fork server, which ends with this process, and return what joins it."""
    forkserver.ensure_running()
    names = ("_forkserver_address", "_forkserver_authkey")  # the second from Python 3.14
    return {name: vars(SERVER)[name] for name in names if vars(SERVER).get(name)}


def join(server: Mapping[str, str | bytes]) -> None:
    """Fork by the server of another process from now on."""
    alive = os.open(os.devnull, os.O_WRONLY)  # our server would end with this file: the joined one ends with its own process
    vars(SERVER).update(server, _forkserver_alive_fd=alive, ensure_running=resource_tracker.ensure_running)
