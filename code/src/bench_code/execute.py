"""`python -m bench_code.execute ROOT LAYOUT PATH ARGUMENT...` runs a script or a document, and notes which files it used."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from bench.common.errors import BenchError
from bench_code.git import is_text
from bench_code.record import Execution, Record
from bench_code.running import kind_of
from bench_code.state import ExecutionState
from bench_code.units import digest
from bench_code.watching import OUTSIDE, count_of_processes, watching


class UsedFiles:
    """Hears which files and folders code uses, and whether it starts a process.

    Attributes:
        paths: The files that it read or wrote.
        folders: The folders that it listed.
        always: Whether it may have used any file.
    """

    def __init__(self) -> None:
        self.paths, self.folders, self.always = set[str](), set[str](), False

    def used(self, path: str, *_: bool) -> None:
        self.paths.add(path)

    def looked_at(self, _: object) -> None:
        """Do nothing: the file of each loaded function counts."""

    def started(self, *_: str) -> None:
        self.always = True

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note a folder that code lists by its name, as `glob` does. What an import lists counts by what it loads."""
        if event not in ("os.listdir", "os.scandir") or "importlib" in sys._getframe(1).f_code.co_filename:
            return
        if not isinstance(folder := arguments[0] or ".", int):
            self.folders.add(os.path.realpath(os.fsdecode(folder)))


def main(root: str, layout: str, path: str, *arguments: str) -> int:
    """Run a file and keep its result. Its output is printed after it has ended. Return 0 if it passed, else 1."""
    state = ExecutionState.open(root)
    step, kind = state.step("run"), kind_of(path)
    surroundings = state.present(step, os.environ).surroundings()
    os.chdir(state.root)
    sys.argv = [path, *arguments]
    sys.path.insert(0, str((state.root / path).parent if kind == "script" else state.root))
    printed = io.BytesIO()
    out = io.TextIOWrapper(printed, "utf-8", write_through=True)
    files, processes, began = UsedFiles(), count_of_processes(), time.perf_counter()
    sys.addaudithook(files.audit)
    with watching(files), contextlib.redirect_stdout(out):
        outcome, detail = _result(kind, path)
    seconds = time.perf_counter() - began
    folders = {folder for folder in files.folders if not folder.startswith(OUTSIDE)}
    loaded = {str(getattr(module, "__file__", None) or "") for module in sys.modules.copy().values()}
    used = {str(state.root / path), *files.paths, *(file for file in loaded if file and not file.startswith(OUTSIDE))}
    used |= {*map(os.path.realpath, used)}
    is_always = files.always or processes != count_of_processes() or not all(map(is_text, used | folders))
    present = state.present()
    facts = {present.fact("file", _inside(state.root, each)) for each in used if is_text(each)}
    facts |= {present.fact("folder", _inside(state.root, each)) for each in folders if is_text(each)}
    facts |= {present.fact("tree")} if is_always else set()
    detail = f"{detail} {digest(printed.getvalue())}".strip()
    records = (Record("rest", "", frozenset(surroundings)), Record(kind, path, frozenset(facts)))
    state.store.save(step, layout, [Execution(kind, path, outcome, detail, seconds, records)])
    sys.stdout.buffer.write(printed.getvalue())
    return 0 if outcome == "passed" else 1


def _result(kind: str, path: str) -> tuple[str, str]:
    """Run a file. Return its outcome, and what is to be said of that."""
    try:
        if kind == "script":
            runpy.run_path(path, run_name="__main__")
        elif (result := doctest.testfile(path, module_relative=False, encoding="utf-8")).failed:
            return "failed", f"{result.failed} of {result.attempted}"
    except SystemExit as end:
        return ("passed", "") if not end.code else ("failed", f"exit {end.code}")
    except BaseException as error:  # whatever a script raises is its result
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return "failed", type(error).__name__
    return "passed", ""


def _inside(root: Path, path: str) -> str:
    """Return a path relative to the top of the tree; if it lies outside, as it is."""
    inside = os.path.relpath(path, root)
    return path if inside == ".." or inside.startswith("../") else inside


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except BenchError as error:
        sys.exit(f"bench: {error}")
