"""Runs what must run again: tests by pytest, and scripts, steps of a pipeline and documents in a process each."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.codebase.git import CodeError
from bench.codebase.store import Kept
from bench.codebase.validity import decide
from bench.codebase.workspace import Workspace

GRACE = 60.0
"""Seconds that a session has to end, and to keep what it has, once it is interrupted."""


@dataclass(frozen=True)
class Runnable:
    """Something beside tests that can be executed.

    kind       "script" and "step" run a Python file, "document" the examples in a text
    name       what it is called in the state
    path       the file, relative to the top of the tree
    arguments  what a script is given
    """

    kind: Literal["script", "step", "document"]
    name: str
    path: str
    arguments: tuple[str, ...] = ()


def run_tests(state: Workspace, arguments: Sequence[str], mode: str = "select", limit: float | None = None) -> int:
    """Run pytest with the plug-in.

    Args:
        state: The execution state of the repository.
        arguments: Words for pytest: files, folders, options.
        mode: "select" runs what is invalid; "usual" and "reversed" run and record all, in this order.
        limit: Seconds after which the session is interrupted. What has ended by then is kept.

    Returns:
        pytest's exit code; 1 where a kept result is a failure.

    Raises:
        CodeError: pytest is not installed, or the limit was reached.
    """
    if importlib.util.find_spec("pytest") is None:
        raise CodeError("pytest is not installed; install it beside bench")
    parallel = ("-n", "0") if importlib.util.find_spec("xdist") else ()
    asked = "--bench-impact" if mode == "select" else f"--bench-record={mode}"
    command = (sys.executable, "-m", "pytest", "-p", "bench.codebase.plugin", asked, *parallel, *arguments)
    return _watched(command, state, limit)


def _watched(command: Sequence[str], state: Workspace, limit: float | None) -> int:
    seeded = {"PYTHONHASHSEED": "0"} | dict(os.environ)  # the order of a set of texts is the same in each run
    with subprocess.Popen(command, cwd=state.root, env=seeded, start_new_session=True) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            kept = "what was complete by then is kept" if _end(process) else "none of its results are kept"
            raise CodeError(f"not done after {limit:g} s, and ended; {kept}") from None
        except KeyboardInterrupt:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> bool:
    """End a session; False where it does not end by itself, and so keeps nothing."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return False
    return True


def run_all(state: Workspace, runnables: Sequence[Runnable], limit: float | None = None) -> list[tuple[Kept, bool]]:
    """Run scripts, steps or documents in their order, each where its last result does not hold any more.

    A step that runs again and leaves the same files invalidates nothing after it.

    Returns:
        For each, its result, and whether it was kept.
    """
    done = []
    for each in runnables:
        if not (state.root / each.path).is_file():
            raise CodeError(f"there is no file {each.path}, which {each.kind} {each.name} runs")
        layout = " ".join((each.path, *each.arguments))
        kept = decide(state.store, state.present(), layout, (each.kind,)).kept.get(each.name)
        if kept is None:
            command = (sys.executable, "-m", "bench.codebase.execute", str(state.root), each.kind, each.name, each.path)
            _watched((*command, *each.arguments), state, limit)
        executions = [execution for execution in state.store.executions(layout, each.name) if execution.kind == each.kind]
        if not executions:
            raise CodeError(f"{each.kind} {each.name} ended without a result; run {each.path} by hand to see why")
        done.append((executions[-1] if kept is None else kept, kept is not None))
    return done
