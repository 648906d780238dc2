"""Sessions of `pytest --bench-impact` in forks of a process that has loaded pytest and nothing else.

A session reads all that is in memory: in the fork of a worker, which holds what other tests loaded, it took ten times as long.
"""

from __future__ import annotations

import atexit
import importlib
import json
import multiprocessing
import os
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from _pytest.config import default_plugins

HERE = Path(__file__).parents[2]
LOADED = ["bench_code.pytest_session", *(f"_pytest.{name}" for name in default_plugins)]
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Seen:
    """What a session's user sees: the outcome of each test that ran, the kept outcomes, what was printed, and the exit code."""

    ran: dict[str, str]
    kept: dict[str, str]
    printed: str
    code: int

    @property
    def table(self) -> dict[str, str]:
        return self.kept | self.ran


def session(root: Path, *words: str, from_: float = 0.0, variables: dict[str, str] | None = None) -> Seen:
    """Run `pytest --bench-impact`; suites that take less than `from_` seconds run all at once."""
    json_, text = root.parent / f"{root.name}.json", root.parent / f"{root.name}.txt"
    json_.unlink(missing_ok=True)
    words_of_run = [f"--bench-json={json_}", *words]
    server = _server()
    server.send((root, words_of_run, from_, {**os.environ, **(variables or {})}, text))
    code = server.recv()
    report = json.loads(json_.read_text()) if json_.exists() else {"ran": {}, "kept": {}}
    return Seen(report["ran"], report["kept"], text.read_text(), code)


@cache
def _server() -> Connection:
    """Start the process that forks, and return the end of its pipe."""
    ours, theirs = SPAWN.Pipe()
    SPAWN.Process(target=_serve, args=(theirs,)).start()
    atexit.register(ours.close)  # before this process waits for the other, which then ends
    return ours


def _serve(asked: Connection) -> None:
    """Load pytest; then fork for each session that is asked for, and answer with its exit code."""
    for name in LOADED:
        importlib.import_module(name)
    with suppress(EOFError, ConnectionError):  # of a worker that has ended
        while True:
            session_asked = asked.recv()
            if not (child := os.fork()):
                _run(*session_asked)
            asked.send(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _run(root: Path, words: list[str], from_: float, variables: dict[str, str], text: Path) -> None:
    """Run pytest in this process with these variables, write what it prints into a file, and exit as it does."""
    code = 99
    try:
        with text.open("w") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        sys.stdout, sys.stderr, sys.stdin = (os.fdopen(os.dup(at), mode) for at, mode in ((1, "w"), (2, "w"), (0, "r")))
        os.chdir(root)
        os.environ.clear()
        os.environ.update({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | variables)
        for name in ("PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_PLUGINS"):
            os.environ.pop(name, None)
        warnings.resetwarnings()
        sys.dont_write_bytecode = True
        sys.path[:] = [str(root), *(each for each in sys.path if not each.startswith(str(HERE / "bench_code_tests")))]
        sys.argv = ["pytest"]
        options = ("-p", "bench_code.plugin", "-p", "no:cacheprovider", "-p", "no:randomly", "-o", f"bench_impact_from={from_}")
        asked = () if "--bench-all" in words else ("--bench-impact",)
        code = int(pytest.main([*options, *asked, "-v", "--rootdir", str(root), *words]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
