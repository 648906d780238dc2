"""`python -m impact [--edits N] [--packages a,b] [--minutes N] [--to FOLDER]`: what selectors lose and cost."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import gettempdir

from impact.kinds import edits_of_kinds
from impact.mutants import Mutant
from impact.packages import PACKAGES, fetch
from impact.report import report
from impact.rows import read, write
from impact.trial import PLAIN, SELECTORS, Suite, compare, version_of

FIRST, NOTHING = Mutant("", 0, "first: nothing is recorded yet", ""), Mutant("", 0, "nothing: nothing changed", "")


def main() -> None:
    """Judge edits of all packages in turns, and write a row for each, and the report. A second call goes on."""
    parser = argparse.ArgumentParser(prog="impact", description=__doc__)
    parser.add_argument("--edits", type=int, default=20, help="how many edits of each package are judged")
    parser.add_argument("--beside", type=int, default=20, help="after how many edits of each pytest-testmon runs beside")
    parser.add_argument("--packages", default=",".join(package.name for package in PACKAGES))
    parser.add_argument("--minutes", type=float, default=600.0, help="after how many minutes nothing more is begun")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(gettempdir(), "bench-impact"),
        help="where packages are fetched to; outside of the repository, whose options pytest else takes",
    )
    parser.add_argument("--to", type=Path, default=Path("reports/impact"))
    asked = parser.parse_args()
    chosen = [each for each in PACKAGES if each.name in asked.packages.split(",")]
    if not chosen:
        sys.exit(f"impact: there are no such packages; there are {parser.get_default('packages')}")
    asked.to.mkdir(parents=True, exist_ok=True)
    until, file = time.monotonic() + 60 * asked.minutes, asked.to / "edits.csv"
    version = version_of("bench")
    rows = [row for row in read(file) if row["version"] == version]
    done = {(row["package"], row["edit"]) for row in rows}
    turns = [_judged(Suite(package, fetch(package, asked.work.resolve())), asked.edits) for package in chosen]
    numbered = enumerate(itertools.zip_longest(*turns))
    for number, (suite, edit) in ((number, each) for number, turn in numbered for each in turn if each is not None):
        if (suite.package.release, _described(edit)) in done:
            continue
        if time.monotonic() > until:
            break
        row = _row(suite, edit, SELECTORS if number < asked.beside + 2 else SELECTORS[-1:])
        if row is None:
            print(f"{suite.package.release} {_described(edit)}: a session did not end; the edit is left out", flush=True)
        else:
            rows.append(row | {"version": version})
            write(file, rows)
            print(row, flush=True)
    (asked.to / "report.md").write_text(report(rows), encoding="utf-8")


def _judged(suite: Suite, count: int) -> Iterator[tuple[Suite, Mutant]]:
    edits = itertools.islice(edits_of_kinds(suite.root, suite.package, seed=1), count)
    return ((suite, edit) for edit in itertools.chain((FIRST, NOTHING), edits))


def _described(edit: Mutant) -> str:
    return f"{edit.path}:{edit.line} {edit.what}" if edit.path else edit.what


def _row(suite: Suite, edit: Mutant, selectors: Sequence[str]) -> dict[str, str] | None:
    """Return what came out after an edit with these selectors; None if its tests, or a session, did not end."""
    row: dict[str, object] = {"package": suite.package.release, "edit": _described(edit)}
    plain = suite.session(PLAIN, edit)
    for selector in selectors:
        session, outcome = suite.session(selector, edit), compare(suite, selector, edit)
        if plain is None or session is None or outcome is None:
            return None
        found = asdict(outcome)
        row |= {"plain s": plain.processor} | {key: found.pop(key) for key in ("tests", "changed")}
        row |= {f"{selector} {key}": value for key, value in found.items()}
        row[f"{selector} s"] = session.processor
    return {key: str(value) for key, value in row.items()}


if __name__ == "__main__":
    main()
