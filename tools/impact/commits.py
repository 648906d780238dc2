"""`python -m impact.commits CLONE`: what `bench code` runs and misses on ten commits of this repository, beside running all.

Each commit is taken in two steps, as somebody works who writes tests first: all of it but its code, and then its code.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import codebase
from impact.packages import git
from impact.tables import COMMITS, write
from impact.trial import OURS, PLAIN, TOOLS, Outcomes, Session, session

TESTS = ("tests/render",)
LAST = "8ab24852"
"""The last of the commits. Every tree is recorded by the `bench.codebase` of the checkout that measures."""
COUNT = 10
QUIET = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Hypothesis's plug-in reads all modules of the tree when tests are collected, and each test would depend on them all."""
LIMIT = 600


def main() -> None:
    """Measure all commits in a clone, and write a row for each step as soon as it is known."""
    parser = argparse.ArgumentParser(prog="impact.commits", description=__doc__)
    parser.add_argument("clone", type=Path, help="a clone of this repository, whose tree is changed")
    parser.add_argument("--to", type=Path, default=Path("reports/impact/commits.csv"))
    asked = parser.parse_args()
    rows: list[dict[str, str]] = []
    for row in measured(asked.clone.resolve()):
        print(" ".join(row.values()), flush=True)
        rows.append(row)
        write(asked.to, rows)


def commits(root: Path) -> list[str]:
    """The last commits that change both code and the tests that are run, oldest first."""
    asked = ("log", "-z", "--format=@%h", "--name-only", LAST, "--", "bench/*.py", *(f"{folder}/*.py" for folder in TESTS))
    told = subprocess.run(("git", "-C", str(root), *asked), check=True, capture_output=True, text=True).stdout
    found = []
    for commit in told.split("@")[1:]:
        name, *files = commit.replace("\0", "\n").split()
        if any(file.startswith("bench/") for file in files) and any(file.startswith(TESTS) for file in files):
            found.append(name)
    return found[:COUNT][::-1]


def measured(root: Path) -> Iterator[dict[str, str]]:
    """A row for each step of each commit. The tree before the first commit has none: there all tests run."""
    kept: Outcomes = {}
    before: Outcomes = {}
    taken = commits(root)
    trees = [(f"{taken[0]}^", f"{taken[0]}^", "")]
    trees += [(commit, f"{commit}{parent}", step) for commit in taken for parent, step in (("^", "tests"), ("", "code"))]
    for commit, code, step in trees:
        git(root, "checkout", "-q", "-f", commit)
        git(root, "restore", f"--source={code}", "--staged", "--worktree", "--", "bench")
        shutil.rmtree(root / "bench" / "codebase", ignore_errors=True)
        shutil.copytree(codebase.__path__[0], root / "bench" / "codebase", ignore=shutil.ignore_patterns("__pycache__"))
        selected, whole = (_session(root, *options) for options in ((*OURS, "--bench-impact"), PLAIN))
        kept |= selected.outcomes
        if step:
            yield _row(commit, step, before, kept, selected, whole)
        before |= whole.outcomes


def _session(root: Path, *options: str) -> Session:
    words = ("-n", "0", *QUIET, "--continue-on-collection-errors", *options, *TESTS)
    ended = session(root, (root, TOOLS), words, root.parent / f"{root.name}.json", LIMIT)
    if ended is None or not ended.outcomes:
        sys.exit(f"impact: the tests do not run in {root}; try pytest -n 0 {' '.join(TESTS)} there")
    return ended


def _row(commit: str, step: str, before: Outcomes, kept: Outcomes, selected: Session, whole: Session) -> dict[str, str]:
    """What a step changed, and what was run of it and missed, in numbers of tests.

    Args:
        commit: The commit.
        step: "tests" or "code".
        before: The last results of full runs.
        kept: The last results of selective runs.
        selected: What ran selectively.
        whole: What ran in full.
    """
    changed = {test for test, result in whole.outcomes.items() if before.get(test) != result}
    missed = {test for test, result in whole.outcomes.items() if test not in selected.outcomes and kept.get(test) != result}
    counts = (len(whole.outcomes), len(changed), len(selected.outcomes), len(missed))
    seconds = (f"{selected.seconds:.1f}", f"{whole.seconds:.1f}")
    return dict(zip(COMMITS, (commit, step, *map(str, counts), *seconds), strict=True))


if __name__ == "__main__":
    main()
