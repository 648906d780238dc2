"""`python -m bench_code.execute ROOT KIND NAME PATH ARGUMENT...` runs one script, step or document and records it."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import runpy
import sys
import time
from pathlib import Path

from bench.common.errors import BenchError
from bench_code.present import AT_START
from bench_code.record import Execution, ExecutionContext
from bench_code.recorder import Recorder
from bench_code.state import ExecutionState
from bench_code.units import digest


def main(root: str, kind: str, name: str, path: str, *arguments: str) -> int:
    """Run a file and keep its result. Its output is printed after it has ended. Return 0 if it passed, else 1."""
    state = ExecutionState.open(root)
    step = state.step("run")
    state.drop_outdated_bytecode()
    os.chdir(state.root)
    sys.argv = [path, *arguments]
    sys.path[0] = str(state.root / Path(path).parent) if kind != "document" else str(state.root)
    recorder, context = Recorder(state.root), ExecutionContext(kind, name)
    printed, began = io.StringIO(), time.perf_counter()
    with recorder.recording(), recorder.context(context), contextlib.redirect_stdout(printed):
        outcome, detail = _document(path) if kind == "document" else _script(path)
    seconds = time.perf_counter() - began
    recorder.keep_outputs(context)
    context.note("file", path, recorder.present.value("file", path))
    for variable in AT_START:
        context.note("environment", variable, recorder.present.variable(variable))
    records, volatile = recorder.records.of(context)
    detail = f"{detail} {digest(printed.getvalue())}".strip()
    layout = " ".join((path, *arguments))
    state.save(step, layout, [Execution(kind, name, outcome, detail, seconds, tuple(records), volatile)])
    sys.stdout.write(printed.getvalue())
    return 0 if outcome == "passed" else 1


def _script(path: str) -> tuple[str, str]:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        return ("passed", "") if not end.code else ("failed", f"exit {end.code}")
    except BaseException as error:  # whatever a script raises is its result
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return "failed", type(error).__name__
    return "passed", ""


def _document(path: str) -> tuple[str, str]:
    result = doctest.testfile(path, module_relative=False, encoding="utf-8")
    return ("failed", f"{result.failed} of {result.attempted}") if result.failed else ("passed", "")


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except BenchError as error:
        sys.exit(f"bench: {error}")
