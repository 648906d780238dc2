"""`python -m bench_code.execute ROOT KIND NAME PATH ARGUMENT...` runs a script, step or document, and notes its files."""

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
from bench_code.git import is_text
from bench_code.record import Execution, Record
from bench_code.state import ExecutionState
from bench_code.units import digest
from bench_code.watching import watching


class UsedFiles:
    """Hears which files code reads and writes.

    Attributes:
        paths: The files.
        processes: What started the processes that it started.
    """

    def __init__(self) -> None:
        self.paths, self.processes = set[str](), list[str]()

    def read(self, path: str) -> None:
        self.paths |= {path} if is_text(path) else set()

    wrote = read

    def looked_at(self, function: object) -> None:
        """Do nothing: the file of each loaded function counts."""

    def started(self, event: str, words: str) -> None:
        self.processes.append(f"{event} {words}")


def main(root: str, kind: str, name: str, path: str, *arguments: str) -> int:
    """Run a file and keep its result. Its output is printed after it has ended. Return 0 if it passed, else 1."""
    state = ExecutionState.open(root)
    step = state.step("run")
    os.chdir(state.root)
    sys.argv = [path, *arguments]
    sys.path[0] = str(state.root / Path(path).parent) if kind != "document" else str(state.root)
    files, printed, began = UsedFiles(), io.StringIO(), time.perf_counter()
    with watching(files), contextlib.redirect_stdout(printed):
        outcome, detail = _document(path) if kind == "document" else _script(path)
    seconds = time.perf_counter() - began
    present = state.present(environment=dict(os.environ))
    loaded = (str(getattr(module, "__file__", None) or "") for module in [*sys.modules.values()])
    used = {os.path.relpath(each, state.root) for each in (*files.paths, *loaded, path) if each}
    facts = {present.fact("file", each) for each in used if not each.startswith(("..", ".git"))}
    facts |= present.surroundings()
    facts |= {present.fact("tree")} if files.processes else set()
    detail = f"{detail} {digest(printed.getvalue())}".strip()
    layout = " ".join((path, *arguments))
    state.save(step, layout, [Execution(kind, name, outcome, detail, seconds, (Record("script", name, frozenset(facts)),))])
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
