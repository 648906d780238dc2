"""Runs what must run again: tests with pytest, and each script or document in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench_code.git import CodeError
from bench_code.store import Kept
from bench_code.validity import decide
from bench_code.workspace import Workspace

GRACE_S = 60.0
"""Seconds in which an interrupted session must end and keep its results."""
STANDARD_ERROR = 2


def run_tests(
    state: Workspace,
    arguments: Sequence[str] = (),
    everything: bool = False,
    limit: float | None = None,
    report: Path | None = None,
) -> int:
    """Run the tests that must run again, with pytest.

    Args:
        state: The execution state of the repository.
        arguments: The arguments of pytest: files, folders and options.
        everything: Whether all tests run, and not only those that must.
        limit: Seconds after which the session is interrupted. The results of tests that have ended by then are kept.
        report: A file for what ran, what was kept and what failed, as JSON. What pytest prints then goes to standard error.

    Returns:
        The exit code of pytest; 1 if a kept result is a failure.

    Raises:
        CodeError: pytest is not installed, or the limit was reached.
    """
    if importlib.util.find_spec("pytest") is None:
        raise CodeError("pytest is not installed; install it beside bench")
    options = ["--bench-all" if everything else "--bench-impact"]
    options += [f"--bench-json={report}"] if report else []
    command = (sys.executable, "-m", "bench_code.session", "-p", "bench_code.plugin", *options, *arguments)
    return _watched(command, state, limit, STANDARD_ERROR if report else None)


def _watched(command: Sequence[str], state: Workspace, limit: float | None, out: int | None = None) -> int:
    with subprocess.Popen(command, cwd=state.root, env=_variables(), stdout=out, start_new_session=True) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            kept = "what was complete by then is kept" if _end(process) else "none of its results are kept"
            raise CodeError(f"not done after {limit:g} s, and ended; {kept}") from None
        except KeyboardInterrupt:
            _end(process)
            raise


def _variables() -> dict[str, str]:
    """Return the variables of a process that runs what must run. The order of a set of texts is the same in each."""
    return {"PYTHONHASHSEED": "0"} | dict(os.environ)


def _end(process: subprocess.Popen[bytes]) -> bool:
    """Interrupt a session. Return False if it does not end by itself, so that it keeps nothing."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return False
    return True


def kind_of(path: str) -> str:
    """Return the kind of execution that a file is run as: a Python file as a script, another as a document with examples."""
    return "script" if path.endswith(".py") else "document"


def run_all(state: Workspace, files: Sequence[Sequence[str]], limit: float | None = None) -> list[tuple[Kept, bool]]:
    """Run in their order those scripts and documents whose last result no longer holds.

    A script that runs again and leaves the same files invalidates nothing after it. What is printed goes to standard error.

    Args:
        state: The execution state of the repository.
        files: The path of each file, relative to the top of the tree, with its arguments.
        limit: Seconds after which a process is ended.

    Returns:
        For each of them its result, and whether the result was kept from an earlier run.

    Raises:
        CodeError: A file does not exist, or a process was ended or left no result.
    """
    results = []
    for path, *arguments in files:
        if not (state.root / path).is_file():
            raise CodeError(f"there is no file '{path}' in {state.root}")
        name = os.path.normpath(path)
        layout = shlex.join((name, *arguments))
        kept = decide(state.store, state.present(environment=_variables()), layout).kept.get(name)
        if kept is None:
            before, words = state.store.executions(layout), (str(state.root), layout, name, *arguments)
            _watched((sys.executable, "-P", "-m", "bench_code.execute", *words), state, limit, STANDARD_ERROR)
            if len(made := state.store.executions(layout)) == len(before):
                raise CodeError(f"{name} ended without a result; run it by hand to see why")
        results.append((kept or made[-1], kept is not None))
    return results
