"""Run untrusted code: code and inputs go in, one JSON value comes out, whatever the code tries.

    result = run_python({"pipeline.py": edited}, "import pipeline\\ndef main(value): return pipeline.run(value)", ["d1,20"])
    result.value if result.ok else result.problem

The code runs in its own process, in a throw-away folder, with its own environment. It is held there, outermost first, by these
guards (`bench.run.sandbox.guards` says which of them this machine has):

1. A launcher (`bench.run.sandbox.launcher`), one for each process that grades, limits its time: `wall_seconds` in all, and
   `idle_seconds` in which it neither runs nor waits for a processor. Then it kills the whole process group. Printed output and
   the result go to unlinked files that the kernel keeps below `output_bytes`; no pipe can block, and none of our memory fills.
   When this process or the launcher ends, in any way, the code ends too.
2. Kernel limits on CPU time, address space, file size and open files; no core dumps.
   Each answer gets its own interpreter; the next one is kept ready (`bench.run.sandbox.cell`).
3. On Linux, without need of root, before the first line of Python: all capabilities are dropped. Landlock, with every right
   and scope that the kernel knows, leaves the interpreter's library and the throw-away folder readable, and nothing
   writable, executable, or reachable by network or signal. A seccomp filter allows the calls that such a process needs and
   refuses all others (`bench.run.sandbox.syscalls`). Then the launcher's child becomes a fresh interpreter, the last program
   that it can execute. It has no ctypes, and cannot read it.
4. Python's audit events (`bench.run.sandbox.child`): opening any other file, writing a file, starting a process, a socket,
   ctypes and the like end the run at once, and are named in `problem`. Clever code can step over this trip-wire; 2 and 3 are
   the wall.

Missing elsewhere: without Landlock (Linux before 5.13) or seccomp (machines other than x86-64 and arm64) that part of 3 is left
out. On macOS all of 3 is left out, and its kernel does not enforce the limit on memory. The code runs there all the same: the
caller decides whether a model's code may run (`bench.run.experiment.untrusted`).

Not defended against: faults of the kernel, and what can be learned from timing.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from bench.common.bounds import MAX_LEVELS, is_too_deep
from bench.common.errors import SandboxBroken, one_line
from bench.run.sandbox.cell import SandboxCell, keep_ready, take_cell
from bench.run.sandbox.guards import guards_left_out
from bench.run.sandbox.launching import launcher, read_whole
from bench.run.sandbox.readable import PACKAGE_FOLDERS
from bench.scenario import Json

SandboxJob = tuple[Mapping[str, str], str, Json]
"""Files, program, and the value for its `main`."""
CHILD = Path(__file__).with_name("child.py")
MAX_PROBLEM_CHARS, MAX_FILE_NAME_BYTES = 200, 200


@dataclass(frozen=True)
class Limits:
    """Limits of untrusted code. `output_bytes` limits the printed output, and separately the result. `idle_seconds` limits the
    time in which the code neither runs nor waits for a processor, so that a busy machine does not shorten its time."""

    wall_seconds: float = 15.0
    cpu_seconds: int = 2
    memory_bytes: int = 512 * 2**20
    output_bytes: int = 2**20
    open_files: int = 32
    idle_seconds: float = 2.0


@dataclass(frozen=True)
class SandboxResult:
    """The result of a run. If `ok`, `value` is the return value of the program. Else `problem` says in one line why there is
    none, and `timed_out` whether a time limit ended the run."""

    ok: bool
    value: Json = None
    problem: str = ""
    timed_out: bool = False


def run_python(files: Mapping[str, str], program: str, value: Json, limits: Limits | None = None) -> SandboxResult:
    """Call `main(value)` of `program` in a new process in which `files` (name -> text) can be imported.

    `value` and the result are JSON values. Whatever the code does becomes a problem, never an exception. Raises SandboxBroken
    if this machine cannot run any code.
    """
    if bad_names := [name for name in files if not _is_file_name(name)]:
        return SandboxResult(False, problem=one_line(f"a file cannot be named {bad_names[0]!r}", MAX_PROBLEM_CHARS))
    try:
        return _run((files, program, value), asdict(limits or Limits()))
    except OSError as error:
        raise SandboxBroken(f"the sandbox cannot be used: {error}") from error


def _is_file_name(name: str) -> bool:
    """Return whether a text can be the name of a file in the job's folder."""
    is_plain = name == Path(name).name and name not in ("", "..") and "\0" not in name
    return is_plain and len(name.encode(errors="replace")) <= MAX_FILE_NAME_BYTES


def _run(job: SandboxJob, limits: Mapping[str, Any]) -> SandboxResult:
    """Run a job in a cell that was started ahead, if there is one, else in a new cell. If the cell that was started ahead has
    ended before the job began, run the job in a new cell."""
    launcher_used, without = launcher(), guards_left_out()
    cell, was_ready = take_cell(launcher_used, limits, without)
    try:
        return run_in(cell, job, without, lambda: keep_ready(launcher_used, limits, without))
    except SandboxBroken:
        if not was_ready:
            raise
    finally:
        cell.close()
    with closing(SandboxCell(launcher(), limits, without)) as new_cell:  # the ready cell had ended, and no code had run
        return run_in(new_cell, job, without)


def run_in(
    cell: SandboxCell, sandbox_job: SandboxJob, without: tuple[str, ...], meanwhile: Callable[[], None] = lambda: None
) -> SandboxResult:
    """Run a job in this cell, and call `meanwhile` while it runs. Raises SandboxBroken if the job did not begin."""
    files, program, value = sandbox_job
    library = str(Path(os.__file__).resolve().parent)
    for name, text in files.items():
        Path(cell.folder, name).write_text(text, encoding="utf-8", errors="replace", newline="")
    job = {
        "program": program,
        "value": json.loads(json.dumps(value)),
        "folder": f"{cell.folder}/",
        "readable": (f"{cell.folder}/", f"{library}/"),
        "installed": tuple(f"{library}/{name}/" for name in PACKAGE_FOLDERS),
        "tripwire": "trip-wire" not in without,
    }
    cell.send_job((_compile(CHILD), job))
    meanwhile()
    has_begun, code, why = _parse_report(cell.wait_for_report())
    if not has_begun:
        raise SandboxBroken(f"the sandbox did not start (exit code {code}): {cell.last_line()[:200]}")
    return _result(code, why, read_whole(cell.returned))


@cache
def _compile(path: Path) -> CodeType:
    """Return the compiled code of a file; each file is compiled once in a process."""
    return compile(path.read_text(encoding="utf-8"), "sandbox", "exec", dont_inherit=True)


def _parse_report(report: bytes) -> tuple[bool, int, str]:
    """Return whether the code began, its exit code, and the limit that ended it. Raises SandboxBroken if the report has no exit
    code."""
    *started_lines, end = report.decode(errors="replace").split("\n")
    code, _, why = end.partition(" ")
    if not code:
        raise SandboxBroken("the sandbox's launcher has ended")
    return started_lines == ["started"], int(code), why


def _result(exit_code: int, why: str, output: bytes) -> SandboxResult:
    """Return the result of a process with this exit code and this output. `why` is the limit that ended it, or ""."""
    if exit_code < 0:
        words = "ran longer than it may" if why or -exit_code == signal.SIGKILL else signal.strsignal(-exit_code)
        timed_out = bool(why) or -exit_code in (signal.SIGKILL, signal.SIGXCPU)
        return SandboxResult(False, problem=f"ended by signal {-exit_code}: {words}", timed_out=timed_out)
    if not output:
        return SandboxResult(False, problem=f"ended with exit code {exit_code} and without a result")
    try:
        report = json.loads(output)
        if is_too_deep(report):
            return SandboxResult(False, problem=f"wrote a result that is nested deeper than {MAX_LEVELS} levels")
        if "problem" in report:
            return SandboxResult(False, problem=one_line(str(report["problem"]), MAX_PROBLEM_CHARS))
        return SandboxResult(True, report["value"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return SandboxResult(False, problem="wrote a result that cannot be read")
