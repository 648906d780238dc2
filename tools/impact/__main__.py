"""`python -m impact [--full] [--mutants N] [--packages a,b] [--to FOLDER]`: what selectors miss, beside running everything."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from impact.hunks import hunks
from impact.mutants import Mutant, mutants
from impact.packages import PACKAGES, RELEASES, Package, fetch
from impact.tables import write_report
from impact.trial import OURS, PLAIN, Row, Session, Suite
from impact.unfollowed import unfollowed

SHORT, FULL = 5, 20
"""Mutants of each package in the two forms; all five packages have a hundred in the full form."""


def main() -> None:
    """Run the generated cases and the mutants of all packages, and write the rows and the report."""
    parser = argparse.ArgumentParser(prog="impact", description=__doc__)
    parser.add_argument("--full", action="store_true", help=f"{FULL} mutants of each package instead of {SHORT}")
    parser.add_argument("--mutants", type=int, help="mutants of each package")
    parser.add_argument("--packages", default=",".join(package.name for package in PACKAGES))
    parser.add_argument("--work", type=Path, default=Path("build/impact"), help="where packages are fetched to")
    parser.add_argument("--to", type=Path, default=Path("reports/impact"))
    parser.add_argument(
        "--hunks", type=int, help="instead of mutants, so many real hunks between each of six releases and the next"
    )
    asked = parser.parse_args()
    work = asked.work.resolve()
    asked.to.mkdir(parents=True, exist_ok=True)
    if asked.hunks:
        _measure(asked.to, "hunks", (_of_release(package, later, work, asked.hunks) for package, later in RELEASES))
    else:
        _write(asked.to / "unfollowed.csv", unfollowed(work))
        count = asked.mutants or (FULL if asked.full else SHORT)
        _measure(asked.to, "mutants", [_of_package(name, work, count) for name in asked.packages.split(",")])
    write_report(asked.to)


def _of_package(name: str, work: Path, count: int) -> Iterator[Row | dict[str, str]]:
    package = next((package for package in PACKAGES if package.name == name), None)
    if package is None:
        sys.exit(f"impact: there is no package '{name}'; there are {', '.join(package.name for package in PACKAGES)}")
    return measured(package, work, lambda root: mutants(root, f"{package.source}/{package.code}", seed=1), count, count // 2)


def _of_release(package: Package, later: str, work: Path, count: int) -> Iterator[Row | dict[str, str]]:
    root = fetch(dataclasses.replace(package, version=later), work)
    return measured(package, work, lambda base: hunks(base, root, f"{package.source}/{package.code}", seed=1), count, count)


def _measure(to: Path, edits: str, packages: Iterable[Iterator[Row | dict[str, str]]]) -> None:
    """Write the rows of all packages, each as soon as it is there."""
    rows: list[dict[str, str]] = []
    costs: list[dict[str, str]] = []
    for package in packages:
        for found in package:
            if isinstance(found, Row):
                rows.append({key: str(value) for key, value in dataclasses.asdict(found).items()})
            else:
                costs.append(found)
            _write(to / f"{edits}.csv", rows)
            if edits == "mutants":
                _write(to / "recording.csv", costs)


def measured(
    package: Package, work: Path, edits: Callable[[Path], Iterable[Mutant]], count: int, silent: int
) -> Iterator[Row | dict[str, str]]:
    """What it cost to record a package's unchanged suite, and then the rows of its edits, each as soon as it is there.

    Args:
        package: Whose tests are run.
        work: Where it is fetched to.
        edits: The edits of the tree in a folder, in a drawn order.
        count: Of how many edits there are rows at most.
        silent: How many of them may change no result; more are passed over.
    """
    suite = Suite(package, fetch(package, work))
    plain = [_ended(suite.run(*PLAIN), package) for _ in range(2)]
    recorded = _ended(suite.run(*OURS, "--bench-record=usual"), package)
    reverse = _ended(suite.run(*OURS, "--bench-record=reversed"), package)
    beside = _ended(suite.run("--testmon"), package)
    suite.keep()
    base = plain[0].outcomes
    flaky = {test for test in base if len({run.outcomes.get(test) for run in (*plain, recorded, reverse, beside)}) > 1}
    cost = {
        "package": package.release,
        "tests": str(len(base)),
        "unstable": str(len(flaky)),
        "plain": f"{min(run.seconds for run in plain):.2f}",
        "bench": f"{recorded.seconds:.2f}",
        "testmon": f"{beside.seconds:.2f}",
    }
    print(cost, flush=True)
    yield cost
    asked = 0
    for mutant in edits(suite.root):
        found = suite.judge(base, flaky, mutant, silent=silent > 0)
        if found:
            asked += 1
            silent -= not found[0].changed
        for row in found or ():
            print(f"{row.selector:8} run {row.run:4} of {row.tests}, changed {row.changed}, missed {row.missed}, "
                  f"distorted {row.distorted}: {row.mutant}", flush=True)  # fmt: skip
        if found is None:
            print(f"left out, since it does not end: {mutant.path}:{mutant.line} {mutant.what}", flush=True)
        yield from found or ()
        if asked == count:
            break


def _ended(session: Session | None, package: Package) -> Session:
    if session is None or not session.outcomes:
        sys.exit(f"impact: the tests of {package.release} do not run here; see them by hand with pytest {package.tests}")
    return session


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0] if rows else (), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
