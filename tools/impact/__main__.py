"""`python -m impact [--edits N] [--times N] [--packages a,b] [--to FOLDER]`: what selectors miss and cost, beside all tests."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

from impact.kinds import edits_of_kinds
from impact.mutants import mutants
from impact.packages import LONG, PACKAGES, Package, fetch
from impact.report import write_report
from impact.rows import SELECTORS, Rows, read, write
from impact.trial import FULL, Session, Suite
from impact.unfollowed import unfollowed


def main() -> None:
    """Judge edits of all kinds of all packages and the generated cases, take times, and write the rows and the report."""
    parser = argparse.ArgumentParser(prog="impact", description=__doc__)
    parser.add_argument("--edits", type=int, default=25, help="how many edits of each package are judged")
    parser.add_argument(
        "--testmon", type=int, default=25, help="after how many of them sessions run; after the others it is decided what would"
    )
    parser.add_argument("--times", type=int, default=3, help="of how many edits of each long package the time is taken")
    parser.add_argument("--rounds", type=int, default=5, help="how often each time is taken, of which the least counts")
    parser.add_argument("--packages", default=",".join(dict.fromkeys(package.name for package in (*PACKAGES, *LONG))))
    parser.add_argument("--minutes", type=float, default=600.0, help="after how many minutes no other edit is begun")
    parser.add_argument("--work", type=Path, default=Path("build/impact"), help="where packages are fetched to")
    parser.add_argument("--to", type=Path, default=Path("reports/impact"))
    asked = parser.parse_args()
    work, names = asked.work.resolve(), asked.packages.split(",")
    chosen = [[package for package in of if package.name in names] for of in (PACKAGES, LONG)]
    if not any(chosen):
        sys.exit(f"impact: there are no such packages; there are {parser.get_default('packages')}")
    asked.to.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * asked.minutes
    for package in chosen[0] if asked.edits else ():
        judge(asked.to, Suite(package, fetch(package, work)), asked.edits, until, asked.testmon)
    for package in chosen[1] if asked.times else ():
        measure(asked.to, Suite(package, fetch(package, work)), asked.times, until, asked.rounds)
    if asked.edits:
        write(asked.to / "unfollowed.csv", unfollowed(work))
    write_report(asked.to)


def judge(to: Path, suite: Suite, count: int, until: float, beside: int) -> None:
    """Judge edits of all kinds of a package, and write rows for each edit, and a row for the package.

    The full suite tells what an edit changed. Selectors run only after edits that changed a result: no other can lose one.
    Each session is kept in the folder of the work, so that a second call goes on where a first was ended.

    Args:
        to: The folder of the rows.
        suite: The package's tests.
        count: How many edits are judged. An edit after which the tests do not end is left out.
        until: When no other edit is begun.
        beside: After how many of them selectors run. After the others our selector only decides what it would run, and it
            runs where that would lose a result.
    """
    package, rows, judged = suite.package, list[dict[str, str]](), 0
    for edit in edits_of_kinds(suite.root, f"{package.source}/{package.code}", package.tests, seed=1):
        if judged == count or time.monotonic() > until:
            break
        whole = suite.session(FULL, edit)
        changes = whole is not None and bool(suite.changed(edit) & suite.tests())
        names = [FULL, *(SELECTORS if changes and judged < beside else ())]
        sessions = {name: session for name in names if (session := suite.session(name, edit)) is not None}
        if whole is not None and changes and judged >= beside:
            ours: Session | None = suite.decided(edit, whole)
            if ours is not None and suite.row("bench", edit, whole, ours).missed:
                ours = suite.session("bench", edit)
            sessions |= {"bench": ours} if ours is not None else {}
        if whole is not None and len(sessions) >= len(names):
            judged += 1
            made = [asdict(suite.row(name, edit, whole, session)) for name, session in sessions.items()]
            rows += [{key: str(value) for key, value in row.items()} for row in made]
            _put(to / "edits.csv", package, rows)
            print(f"{package.release} {judged}: {made[-1]}", flush=True)
    about = {"package": package.release, "tests": str(len(suite.base)), "differ": str(len(suite.differing()))}
    _put(to / "suites.csv", package, [about | suite.costs()])


def measure(to: Path, suite: Suite, count: int, until: float, rounds: int) -> None:
    """Take the time of edits of bodies and of no edit, and write a row for each.

    Args:
        to: The folder of the rows.
        suite: The package's tests.
        count: How many edits are taken.
        until: When no other edit is begun.
        rounds: How often each is taken. The least counts.
    """
    package, rows = suite.package, list[dict[str, str]]()
    every = mutants(suite.root, f"{package.source}/{package.code}", seed=2)[: 3 * count]
    edits = (edit for edit in every if suite.session(FULL, edit) is not None)
    for edit in (None, *(edit for edit, _ in zip(edits, range(count), strict=False))):
        if time.monotonic() > until:
            break
        spent = suite.times(edit, rounds)
        what = "none" if edit is None else f"{edit.path}:{edit.line} {edit.what}"
        rows.append(
            {
                "package": package.release,
                "edit": what,
                "rounds": str(rounds),
                "all": f"{spent[FULL]:.2f}",
                "bench": f"{spent['bench']:.2f}",
            }
        )
        _put(to / "times.csv", package, rows)
        print(rows[-1], flush=True)


def _put(path: Path, package: Package, rows: Rows) -> None:
    """Write the rows of a package in place of its earlier rows."""
    write(path, [*(row for row in read(path) if row["package"] != package.release), *rows])


if __name__ == "__main__":
    main()
