"""`python -m impact [--full] [--hunks N] [--packages a,b] [--to FOLDER]`: what selectors miss, beside running everything."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from impact.hunks import hunks
from impact.kinds import edits_of_kinds
from impact.mutants import Mutant, mutants
from impact.packages import PACKAGES, RELEASES, STRANGERS, Package, fetch
from impact.reasons import why_run
from impact.report import write_report
from impact.rows import write
from impact.trial import AS_USED, FULL, Suite
from impact.unfollowed import unfollowed

SHORT, LONG = (10, 3, 2), (24, 12, 8)
"""Of each package in the two forms: how many mutants are screened at first, are judged as drawn, and are judged as widest."""

Sample = list[tuple[str, Mutant]]
"""Edits, each with how it was chosen."""


def main() -> None:
    """Judge the generated cases and the edits of all packages, and write the rows and the report."""
    parser = argparse.ArgumentParser(prog="impact", description=__doc__)
    judged = f"{sum(LONG[1:])} mutants of each package instead of {sum(SHORT[1:])}"
    parser.add_argument("--full", action="store_true", help=judged)
    parser.add_argument("--packages", default=",".join(package.name for package in (*PACKAGES, *STRANGERS)))
    parser.add_argument("--work", type=Path, default=Path("build/impact"), help="where packages are fetched to")
    parser.add_argument("--to", type=Path, default=Path("reports/impact"))
    parser.add_argument(
        "--hunks", type=int, help="instead of mutants, so many real hunks between each of six releases and the next"
    )
    parser.add_argument("--kinds", type=int, help="instead of mutants, so many edits of all kinds of each strangers' package")
    parser.add_argument("--decide", action="store_true", help="let our selector decide alone, and run nothing of it")
    asked = parser.parse_args()
    work, packages = asked.work.resolve(), asked.packages.split(",")
    asked.to.mkdir(parents=True, exist_ok=True)
    if asked.kinds:
        strangers = [package for package in STRANGERS if package.name in packages]
        judge_kinds(asked.to, strangers, work, asked.kinds)
    elif asked.hunks:
        releases = [_of_release(package, later, work, asked.hunks) for package, later in RELEASES if package.name in packages]
        judge(asked.to, "hunks", releases, asked.decide)
    else:
        write(asked.to / "unfollowed.csv", unfollowed(work))
        form = LONG if asked.full else SHORT
        samples = [_of_package(package.name, work, *form) for package in PACKAGES if package.name in packages]
        judge(asked.to, "mutants", samples, asked.decide)
        costs = [suite.costs() | {"deciding": f"{suite.deciding(sample[0][1]):.2f}"} for suite, sample in samples if sample]
        write(asked.to / "recording.csv", costs)
    write_report(asked.to)


def _of_package(name: str, work: Path, screened: int, drawn: int, widest: int) -> tuple[Suite, Sample]:
    package = next((package for package in PACKAGES if package.name == name), None)
    if package is None:
        sys.exit(f"impact: there is no package '{name}'; there are {', '.join(package.name for package in PACKAGES)}")
    suite = Suite(package, fetch(package, work))
    every = mutants(suite.root, f"{package.source}/{package.code}", seed=1)
    return suite, chosen(suite, every, screened, drawn, widest)


def _of_release(package: Package, later: str, work: Path, count: int) -> tuple[Suite, Sample]:
    root = fetch(replace(package, version=later), work)
    suite = Suite(package, fetch(package, work))
    every = hunks(suite.root, root, f"{package.source}/{package.code}", seed=1)
    return suite, [("drawn", hunk) for hunk in every if suite.ends(hunk)][:count]


def chosen(suite: Suite, candidates: Sequence[Mutant], screened: int, drawn: int, widest: int) -> Sample:
    """Choose the mutants that are judged, by a rule that looks at the full runs alone and at no selector.

    Args:
        suite: The tests, which are run in full with each candidate that is screened.
        candidates: Mutants in a drawn order. One that does not end is left out.
        screened: How many candidates are screened at first. More are, one by one, until there are enough.
        drawn: How many are taken as drawn, of which at most half change no result.
        widest: How many of the rest are taken that change most results, though at most half of all.

    Returns:
        The mutants, `drawn` and `widest` of them; fewer where there are not enough candidates.
    """
    sample: Sample = []
    for count in range(min(screened, len(candidates)), len(candidates) + 1):
        changed = {mutant: len(suite.changed(mutant)) for mutant in candidates[:count] if suite.ends(mutant)}
        silent = [mutant for mutant, results in changed.items() if not results][: drawn // 2]
        first = [mutant for mutant, results in changed.items() if results or mutant in silent][:drawn]
        rest = [mutant for mutant, results in changed.items() if mutant not in first and 0 < results <= len(suite.base) // 2]
        most = sorted(rest, key=lambda mutant: -changed[mutant])[:widest]
        sample = [("drawn", mutant) for mutant in first] + [("widest", mutant) for mutant in most]
        if len(sample) == drawn + widest:
            break
    return sample


def judge_kinds(to: Path, packages: Sequence[Package], work: Path, count: int) -> None:
    """Judge edits of all kinds of packages, and write a row of each selector for each edit, and a row for each package.

    Args:
        to: The folder of the rows.
        packages: The packages.
        work: Where they are fetched to.
        count: How many edits of each are judged. An edit after which the tests do not end is left out.
    """
    rows: list[dict[str, str]] = []
    about: list[dict[str, str]] = []
    for package in packages:
        suite = Suite(package, fetch(package, work), AS_USED)
        judged = 0
        for edit in edits_of_kinds(suite.root, f"{package.source}/{package.code}", package.tests, seed=1):
            whole, theirs, ours = (suite.session(name, edit) for name in (FULL, "testmon", "bench"))
            if whole is not None and theirs is not None and ours is not None:
                judged += 1
                for name, session in (("bench", ours), ("testmon", theirs)):
                    row = {"choice": "drawn"} | asdict(suite.row(name, edit, whole, session))
                    rows.append({key: str(value) for key, value in row.items()})
                write(to / "strangers.csv", rows)
                print(package.release, judged, rows[-2], flush=True)
            if judged == count:
                break
        recorded = {name: suite.recorded(name)[0].seconds for name in (FULL, "bench", "testmon")}
        counts = {"tests": len(suite.base), "differ": len(suite.differing()), "edits": judged}
        about.append({"package": package.release} | {key: str(value) for key, value in counts.items()})
        about[-1] |= {name: f"{seconds:.2f}" for name, seconds in recorded.items()}
        write(to / "strangers_suites.csv", about)


def judge(to: Path, edits: str, samples: Sequence[tuple[Suite, Sample]], decide: bool = False) -> None:
    """Judge each edit by each selector, and write a row of both for each edit, and why tests ran.

    Each session is kept in the folder of the work, so that a second call goes on where a first was ended.

    Args:
        to: The folder of the rows.
        edits: What the edits are: "mutants" or "hunks".
        samples: Each suite with its edits.
        decide: Whether our selector decides alone, and nothing of what it decides is run.
    """
    rows, reasons = [], []
    for suite, sample in samples:
        judged = []
        for number, (choice, edit) in enumerate(sample, 1):
            whole, theirs = suite.session(FULL, edit), suite.session("testmon", edit)
            ours = suite.decided(edit) if decide else suite.session("bench", edit)
            print(f"{suite.package.release}, {number} of {len(sample)}", flush=True)
            if whole is None or theirs is None or ours is None:
                print(f"left out, since it does not end: {edit.path}:{edit.line} {edit.what}", flush=True)
                continue
            for name, session in (("bench", ours), ("testmon", theirs)):
                row = {"choice": choice} | asdict(suite.row(name, edit, whole, session))
                rows.append({key: str(value) for key, value in row.items()})
            if decide:
                rows[-2] |= dict.fromkeys(("distorted", "seconds"), "")
            judged.append(edit)
        reasons.append(why_run(suite, judged))
    write(to / f"{edits}_reasons.csv", reasons)
    write(to / f"{edits}.csv", rows)


if __name__ == "__main__":
    main()
