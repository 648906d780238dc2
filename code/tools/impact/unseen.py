"""`python -m impact.unseen PACKAGE`: the files of a tree that its tests touch, by `strace -f`, beside those recorded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from bench_code import ExecutionState
from impact.packages import PACKAGES, fetch
from impact.trial import TOOLS

CALLS = "open,openat,stat,lstat,newfstatat,statx,access,faccessat,faccessat2,readlink"
NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"')
PYTEST_ITSELF = (
    "pyproject.toml",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "setup.py",
    "conftest.py",
)


def main(name: str, work: Path) -> int:
    """Print each file that the system call trace has and the state has not; exit with 1 where there is one."""
    package = next(package for package in PACKAGES if package.name == name)
    root = fetch(package, work.resolve())
    ExecutionState.open(root).step("begin")  # so that the traced process need not read the whole tree for it
    trace = work / f"{package.release}.strace"
    path = os.pathsep.join((str(root / package.source), str(TOOLS), str(TOOLS.parent)))
    fixed = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    words = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:testmon",
        "-p",
        "bench_code.plugin",
        "--bench-record=usual",
        package.tests,
    )
    command = ("strace", "-f", "-qq", "-e", f"trace={CALLS}", "-o", str(trace.resolve()), *words)
    subprocess.run(command, cwd=root, env=os.environ | fixed, check=False, stdout=subprocess.DEVNULL)
    lines = trace.read_text(errors="replace").splitlines()
    process = lines[0].split()[0]  # the tests' own; git is a process beside it, which reads the whole tree for the snapshot
    touched = [(line, path) for line in lines if line.startswith(process) and (path := _inside(line, root))]
    facts = ExecutionState.open(root).store.facts().values()
    recorded = {fact.name.partition("::")[0] for fact in facts} | {fact.value for fact in facts if fact.kind == "name"}
    files = {path for _, path in touched if (root / path).is_file() and not path.startswith(".pytest_cache")}
    opened = {path for line, path in touched if "open" in line.partition("(")[0]} & files
    unseen = sorted(path for path in opened - recorded if Path(path).name not in PYTEST_ITSELF)
    looked_at = len(files - opened - recorded)
    print(f"{package.release}: {len(files)} files touched, {len(opened)} of them opened, {len(unseen)} opened and unseen")
    print(f"{looked_at} unseen files were looked at and not opened")
    print("\n".join(unseen))
    return 1 if unseen else 0


def _inside(line: str, root: Path) -> str:
    """The path in the tree that a line of the trace names; "" where it names none."""
    named = NAMED.search(line)
    if named is None:
        return ""
    real = os.path.normpath(root / named[1])
    inside = os.path.relpath(real, root)
    return "" if inside.startswith((".git", "..")) or "__pycache__" in inside or inside == "." else inside


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2] if sys.argv[2:] else "build/impact")))
