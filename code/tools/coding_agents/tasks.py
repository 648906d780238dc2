"""The tasks of a coding agent: repositories with a bug, a test that fails, and the patches that mend the bug."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from impact.mutants import Mutant, mutants
from impact.packages import Package, fetch, git
from scenarios.repairs.generate import repair
from scenarios.repairs.names import VISIBLE

PACKAGES = (
    Package("inflect", "7.6.0", "inflect"),
    Package("markdown_it_py", "4.3.0", "markdown_it", "tests/test_port tests/test_api tests/test_cmark_spec"),
    Package("sqlparse", "0.6.1", "sqlparse"),
    Package("marshmallow", "4.4.0", "marshmallow", source="src"),
    Package("voluptuous", "0.16.0", "voluptuous", "voluptuous/tests"),
)
QUIET = "-q -p no:cacheprovider --tb=short"
MAX_FAILING = 10
"""Tests that a bug makes fail, at most: a bug that fails more is found without a choice of tests."""
LONGEST = 300
"""Seconds of a plain run. A mutant after which the tests do not end is no bug here."""
AUTHOR = {f"GIT_{who}_{what}": "agent@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@dataclass(frozen=True)
class Task:
    """A repository, and what the scripted model makes of it.

    states    the texts of the files that it patches: with the bug, after each patch, and as they must be
    slips     whether the first patch mends the bug and breaks another line of the same file
    """

    name: str
    root: Path
    tests: str
    failing: str
    states: tuple[Mapping[str, str], ...]
    slips: bool = False

    def command(self, arm: str) -> str:
        """The command by which the agent of an arm runs its tests."""
        if arm == "selection":
            return f"bench code run {QUIET} {self.tests}"
        failing, every = (f"python -m pytest {QUIET} {tests}" for tests in (shlex.quote(self.failing), self.tests))
        return {"all": every, "failing": failing, "both": f"{failing} && {every}"}[arm]


class Project:
    """The environment of the repositories: it runs commands there.

    Args:
        python: The Python that has pytest, `bench code`, and what the packages need.
    """

    def __init__(self, python: Path):
        paths = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(("src", "."))}
        self.variables = {**os.environ, **paths, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}
        self._truths: dict[str, bool] = {}

    def run(self, root: Path, command: str) -> tuple[int, str]:
        """Run a command in a repository. Return its exit code and what it printed."""
        done = subprocess.run(
            command, shell=True, cwd=root, env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return done.returncode, done.stdout.decode(errors="replace")

    def failures(self, root: Path, tests: str, most: int) -> list[str]:
        """Return the tests that fail in a plain run, which ends after so many; none if the run cannot begin."""
        code, printed = self.run(root, f"timeout {LONGEST} python -m pytest {QUIET} --tb=no -rfE --maxfail={most} {tests}")
        return re.findall(r"^(?:FAILED|ERROR) (.+?::.+?)(?: - .*)?$", printed, re.M) if code == 1 else []

    def passes(self, root: Path, tests: str) -> bool:
        """Return whether a plain full run of the present tree passes. A tree is run once."""
        tree = digest(root)
        if tree not in self._truths:
            self._truths[tree] = self.run(root, f"timeout {LONGEST} python -m pytest {QUIET} --tb=no {tests}")[0] == 0
        return self._truths[tree]


def package_tasks(package: Package, work: Path, project: Project, count: int) -> Iterator[Task]:
    """Yield so many tasks of a package. Drawn mutants are the bugs; in every second task the first patch slips."""
    root, name = fetch(package, work), package.release
    reset(root)
    if not project.passes(root, package.tests):
        raise SystemExit(f"coding_agents: the tests of {name} fail as they are")
    drawn, made = iter(mutants(root, f"{package.source}/{package.code}", seed=2)), 0
    for bug in drawn:
        if made == count:
            return
        failing = _failures(project, root, package.tests, bug, MAX_FAILING + 1)
        if not 0 < len(failing) <= MAX_FAILING or not _fails(project, root, failing[0], bug):
            continue
        right = (root / bug.path).read_text("utf-8")
        slip = next((each for each in drawn if each.path == bug.path and _fails(project, root, package.tests, each)), None)
        slips = made % 2 == 1 and slip is not None
        texts = (bug.content, slip.content, right) if slips and slip is not None else (bug.content, right)
        made += 1
        yield Task(f"{name}/{made}", root, package.tests, failing[0], tuple({bug.path: text} for text in texts), slips)


def _fails(project: Project, root: Path, tests: str, mutant: Mutant) -> bool:
    return bool(_failures(project, root, shlex.quote(tests) if "::" in tests else tests, mutant, 1))


def _failures(project: Project, root: Path, tests: str, mutant: Mutant, most: int) -> list[str]:
    right = (root / mutant.path).read_text("utf-8")
    write(root, {mutant.path: mutant.content})
    failing = project.failures(root, tests, most)
    write(root, {mutant.path: right})
    return failing


def repair_task(name: str, work: Path, project: Project) -> Task:
    """Return the task of an instance of the pack `repairs`: its modules are mended one after the other."""
    instance, root = repair(name), work / "repairs" / name
    shutil.rmtree(root, ignore_errors=True)
    instance.write(root)
    states = [dict(instance.files)]
    for path in dict.fromkeys(instance.path(bug.module) for bug in instance.bugs):
        states.append({**states[-1], path: instance.right[path]})
    failing = project.failures(root, VISIBLE, MAX_FAILING)
    git(root, "init", "-q")
    commit(root, "as generated")
    return Task(f"repairs/{name}", root, "tests", failing[0], tuple(states))


def prepare(task: Task, arm: str, project: Project) -> float:
    """Bring a repository to its bug; for the selection, with what `bench code` recorded before the bug came in.

    Returns:
        The seconds that the recording took; 0 where the recording of an earlier task of the repository is used.
    """
    state, kept = task.root / ".git" / "bench-code", task.root.parent / f"{task.root.name}.recorded"
    reset(task.root)
    write(task.root, task.states[-1])
    commit(task.root, "right")
    seconds = 0.0
    if arm == "selection":
        shutil.rmtree(state, ignore_errors=True)
        if kept.exists():
            shutil.copytree(kept, state)
        else:
            before = time.monotonic()
            project.run(task.root, task.command(arm))
            seconds = time.monotonic() - before
            shutil.copytree(state, kept)
    write(task.root, task.states[0])
    commit(task.root, task.name)
    return seconds


def reset(root: Path) -> None:
    """Bring a repository back to its first commit."""
    words = ("git", "-C", str(root), "rev-list", "--max-parents=0", "HEAD")
    first = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    git(root, "reset", "-q", "--hard", first)
    git(root, "clean", "-qfd", "-e", "__pycache__")


def commit(root: Path, message: str) -> None:
    """Commit all files of a repository, also where nothing changed."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message, variables=AUTHOR)


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write files, and stamp them."""
    for path, text in files.items():
        (root / path).write_text(text, "utf-8")
    stamp(root)


def stamp(root: Path) -> None:
    """Give each Python file a time that its content decides.

    Python trusts bytecode whose source has the same size and second. Two patches within a second would not be told apart.
    """
    for file in root.rglob("*.py"):
        second = int(hashlib.sha256(file.read_bytes()).hexdigest()[:7], 16)
        os.utime(file, (second, second))


def digest(root: Path) -> str:
    """Return the digest of a repository's Python files."""
    parts = [part for file in sorted(root.rglob("*.py")) for part in (str(file).encode(), file.read_bytes())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
