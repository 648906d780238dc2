"""`python -m impact [--edits N] [--rounds N] [--packages a,b] [--to FOLDER]`: what selectors lose and cost."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from impact.kinds import edits_of_kinds
from impact.mutants import Mutant, mutants
from impact.packages import LONG, PACKAGES, fetch
from impact.report import write_report
from impact.rows import SELECTORS, write
from impact.trial import PLAIN, Suite, compare

TURN = 5
"""So many edits of a package are judged before the next package has its turn, so the sample is balanced at any time."""
OF_TIMES = ("plain", "first", "nothing")
"""What is timed beside edits of bodies: all tests plain, the session that records all, and a session with nothing changed."""


def main() -> None:
    """Judge edits of all kinds of all packages, take times, and write the rows and the report."""
    parser = argparse.ArgumentParser(prog="impact", description=__doc__)
    parser.add_argument("--edits", type=int, default=25, help="how many edits of each package are judged")
    parser.add_argument("--rounds", type=int, default=5, help="how often each time is taken, of which the least counts")
    parser.add_argument("--bodies", type=int, default=2, help="after how many edits of bodies of each long suite it is taken")
    parser.add_argument("--packages", default=",".join(dict.fromkeys(package.name for package in (*PACKAGES, *LONG))))
    parser.add_argument("--minutes", type=float, default=600.0, help="after how many minutes nothing more is begun")
    parser.add_argument("--work", type=Path, default=Path("build/impact"), help="where packages are fetched to")
    parser.add_argument("--to", type=Path, default=Path("reports/impact"))
    asked = parser.parse_args()
    work, names = asked.work.resolve(), asked.packages.split(",")
    judged, timed = ([each for each in of if each.name in names] for of in (PACKAGES, LONG))
    if not judged and not timed:
        sys.exit(f"impact: there are no such packages; there are {parser.get_default('packages')}")
    asked.to.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * asked.minutes
    edited = Edited([Suite(package, fetch(package, work)) for package in judged], asked.to)
    clocked = Timed([Suite(package, fetch(package, work)) for package in timed], asked.to, asked.bodies)
    for turn in range(max(-(-asked.edits // TURN), asked.rounds)):
        if turn * TURN < asked.edits:
            edited.judge(min(asked.edits, (turn + 1) * TURN), until)
        if turn < asked.rounds:
            clocked.measure(until)
    if asked.edits:
        edited.describe()
    write_report(asked.to)


class Edited:
    """Edits of all kinds of packages, and a row for each edit that was judged.

    Args:
        suites: The packages' tests.
        to: The folder of the rows.
    """

    def __init__(self, suites: list[Suite], to: Path):
        self._suites, self._to = suites, to
        self._edits = [edits_of_kinds(suite.root, suite.package, seed=1) for suite in suites]
        self._rows: list[list[dict[str, str]]] = [[] for _ in suites]
        self._left_out = [0 for _ in suites]

    def judge(self, wanted: int, until: float) -> None:
        """Judge edits of each package until there are so many, or the time is over.

        After each edit all tests run plain, and a session of each selector, whose results are compared with the plain ones.
        An edit after which the tests do not end is left out.
        """
        for place, (suite, edits, rows) in enumerate(zip(self._suites, self._edits, self._rows, strict=True)):
            while len(rows) < wanted and time.monotonic() < until and (edit := next(edits, None)) is not None:
                if (row := _row(suite, edit)) is None:
                    self._left_out[place] += 1
                    continue
                rows.append(row)
                write(self._to / "edits.csv", [row for of in self._rows for row in of])
                print(row, flush=True)

    def describe(self) -> None:
        """Write a row for each package."""
        rows = [_about(suite, count) for suite, count in zip(self._suites, self._left_out, strict=True)]
        write(self._to / "suites.csv", rows)


def _row(suite: Suite, edit: Mutant) -> dict[str, str] | None:
    """What came out after an edit; None if its tests, or a session, did not end."""
    row: dict[str, object] = {"package": suite.package.release, "edit": f"{edit.path}:{edit.line} {edit.what}"}
    plain = suite.session(PLAIN, edit)
    for selector in SELECTORS if plain else ():
        session, outcome = suite.session(selector, edit), compare(suite, selector, edit)
        if session is None or outcome is None:
            return None
        found = asdict(outcome)
        row |= {key: found.pop(key) for key in ("tests", "changed")}
        row |= {f"{selector} {key}": value for key, value in found.items()}
        row[f"{selector} s"] = session.processor
    return {key: str(value) for key, value in row.items()} if plain else None


def _about(suite: Suite, left_out: int) -> dict[str, str]:
    """What there is to say of a package's unchanged suite."""
    first, plain = suite.first("bench"), suite.session(PLAIN, None, 2)
    base = suite.base
    differ = sum(first.table.get(test) != result for test, result in base.items()) if first else len(base)
    costs = {"plain s": plain and plain.processor, "first s": first and first.processor}
    about = {"package": suite.package.release, "tests": len(base), "unsteady": len(suite.unsteady), "differ": differ}
    return {key: str(value) for key, value in (about | {"left out": left_out} | costs).items()}


class Timed:
    """The times of all tests, the first session, a session with nothing changed and sessions after edits of bodies.

    Args:
        suites: The packages' tests.
        to: The folder of the rows.
        bodies: How many edits of bodies are taken of each.
    """

    def __init__(self, suites: list[Suite], to: Path, bodies: int):
        self._suites, self._to, self._count = suites, to, bodies
        self._taken: dict[tuple[str, str], list[float]] = {}

    def measure(self, until: float) -> None:
        """Take each time once, in turns, if the time is not over."""
        for suite in self._suites:
            if time.monotonic() > until:
                break
            suite.first("bench")  # so that each session begins with the state that the first one leaves
            bodies = {f"{each.path}:{each.line} {each.what}": each for each in itertools.islice(_bodies(suite), self._count)}
            for what, edit in (dict.fromkeys(OF_TIMES) | bodies).items():
                session = suite.run(PLAIN if what == "plain" else "bench", edit, begins=what == "first")
                if session is not None:
                    self._taken.setdefault((suite.package.release, what), []).append(session.wall)
                    print(suite.package.release, what, session.wall, flush=True)
            rows = [(*key, " ".join(f"{each:.2f}" for each in taken)) for key, taken in self._taken.items()]
            write(self._to / "times.csv", [dict(zip(("package", "what", "s"), row, strict=True)) for row in rows])


def _bodies(suite: Suite) -> Iterator[Mutant]:
    """Edits of bodies after which the plain suite ends."""
    every = mutants(suite.root, f"{suite.package.source}/{suite.package.code}", seed=2)
    return (edit for edit in every if suite.session(PLAIN, edit) is not None)


if __name__ == "__main__":
    main()
