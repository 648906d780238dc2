"""`python -m impact.commits [--ignoring] CLONE`: what `bench code` runs and misses on ten commits, beside running all.

The commits follow one another. After each, what it invalidates runs, and then all tests run, to compare.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import codebase
from impact.decision import REASONS
from impact.packages import git
from impact.rows import write
from impact.tables import COMMITS
from impact.trial import FULL, OURS, PLAIN, TOOLS, Outcomes, Session, environment, key, once, session

TESTS = ("tests/analysis", "tests/report", "tests/packs")
CODE = ("bench/*.py", ":!bench/codebase", *(f"{folder}/*.py" for folder in TESTS))
"""What a commit changes that is taken. Every tree is recorded by the `bench.codebase` of the checkout that measures."""
LAST = "e0f5ec2d"
COUNT = 10
QUIET = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Hypothesis's plug-in reads all modules of the tree when tests are collected, and each test would depend on them all."""
IGNORING = ("-o", "bench_impact_ignores=clock chance")
"""Tests are kept although they read the clock or draw chance, with `--ignoring`."""
LIMIT = 600


def main() -> None:
    """Measure all commits in a clone, and write a row for each as soon as it is known, and why tests ran."""
    parser = argparse.ArgumentParser(prog="impact.commits", description=__doc__)
    parser.add_argument("clone", type=Path, help="a clone of this repository, whose tree is changed")
    parser.add_argument("--to", type=Path, default=Path("reports/impact"))
    parser.add_argument("--ignoring", action="store_true", help="keep tests although they read the clock or draw chance")
    asked = parser.parse_args()
    name = "commits_ignoring" if asked.ignoring else "commits"
    rows: list[dict[str, str]] = []
    counted = Counter[str]()
    for row, why in measured(asked.clone.resolve(), IGNORING if asked.ignoring else ()):
        print(" ".join(row.values()), dict(Counter(why.values())), flush=True)
        rows.append(row)
        counted.update(why.values())
        write(asked.to / f"{name}.csv", rows)
        tests = sum(int(row["tests"]) for row in rows)
        counts = {"tests": tests, "run": counted.total()} | {reason: counted[reason] for reason in REASONS}
        write(asked.to / f"{name}_reasons.csv", [{"package": name} | {reason: str(count) for reason, count in counts.items()}])


def commits(root: Path) -> list[str]:
    """The last commits that change code or the tests that are run, oldest first, after the commit before them."""
    asked = ("log", f"-{COUNT}", "--reverse", "--format=%h", LAST, "--", *CODE)
    told = subprocess.run(("git", "-C", str(root), *asked), check=True, capture_output=True, text=True).stdout.split()
    return [f"{told[0]}^", *told]


def measured(root: Path, options: Sequence[str]) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """A row for each commit, and the reason why each test ran. The commit before the first has none: there all tests run.

    Args:
        root: The clone.
        options: pytest's further options where the invalid tests run.
    """
    last: Outcomes = {}
    for commit in commits(root):
        _take(root, commit)
        reasons = _decision(root) if last else {}
        selected = _run(root, *OURS, "--bench-impact", *options)
        if last:
            whole = _run(root, *PLAIN, kept_in=root.parent / "sessions" / f"{key(FULL, *PLAIN, *TESTS, commit)}.json")
            changed = {test for test, result in whole.outcomes.items() if last.get(test) != result}
            why = {test: "changed" if test in changed else reasons.get(test, "others") for test in selected.outcomes}
            yield _row(commit, changed, selected, whole), why
        last |= selected.outcomes


def _take(root: Path, commit: str) -> None:
    """Bring the tree to a commit, with the `bench.codebase` of here."""
    git(root, "checkout", "-q", "-f", commit)
    shutil.rmtree(root / "bench" / "codebase", ignore_errors=True)
    shutil.copytree(codebase.__path__[0], root / "bench" / "codebase", ignore=shutil.ignore_patterns("__pycache__"))


def _run(root: Path, *options: str, kept_in: Path | None = None) -> Session:
    """The tests under these options; a session that a file keeps is not run again."""
    words = ("-n", "0", *QUIET, "--continue-on-collection-errors", *options, *TESTS)

    def run() -> Session | None:
        return session(root, (root, TOOLS), words, root.parent / f"{root.name}.json", LIMIT)

    ended = once(kept_in, run) if kept_in is not None else run()
    if ended is None or not ended.outcomes:
        sys.exit(f"impact: the tests do not run in {root}; try pytest -n 0 {' '.join(TESTS)} there")
    return ended


def _decision(root: Path) -> dict[str, str]:
    """The tests recorded before that must run in the present tree, each with its reason."""
    words = (sys.executable, "-m", "impact.decision")
    told = subprocess.run(words, cwd=root, env=environment((root, TOOLS)), check=True, capture_output=True)
    reasons: dict[str, str] = json.loads(told.stdout)
    return reasons


def _row(commit: str, changed: set[str], selected: Session, whole: Session) -> dict[str, str]:
    """What a commit changed, and what was run of it, missed and distorted, in numbers of tests.

    Args:
        commit: The commit.
        changed: The tests whose results in the full run are new or changed.
        selected: What ran selectively.
        whole: What ran in full.
    """
    ran = selected.outcomes
    distorted = {test for test, result in ran.items() if whole.outcomes.get(test) != result}
    counts = (len(whole.outcomes), len(changed), len(ran), len(changed - ran.keys()), len(distorted))
    seconds = (f"{selected.seconds:.1f}", f"{whole.seconds:.1f}")
    return dict(zip(COMMITS, (commit, *map(str, counts), *seconds), strict=True))


if __name__ == "__main__":
    main()
