"""Measure our own time per call beside Inspect AI's and a report's beside a plain loop, and append a row to the table.

    PYTHONPATH=tools/reports python -m perf.kept

It is the processor's time, and the least of several rounds. The table is committed: a slip is seen where a row is higher than
the one above it, measured on the same machine.
"""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from perf import overhead, report

TABLE = Path(__file__).parents[3] / "reports" / "perf" / "README.md"
HEAD = """# Speed, commit by commit

`nox -s perf` appends a row: how many milliseconds of the processor a call takes in a run, with the simulated model and the
checks; the same as a share of what Inspect AI takes for the same calls with its mock model and without its log in real time;
and how long a report of 10,000 trials and 50,000 calls takes, as many times as ten lines with `json.loads` take to read the
same file and group it: as frames, and as the whole report. Both are measured at the first reading of the
run, and again, when its frames are kept in the user's cache folder. The floor is the report of a run of one trial.
Compare rows that were measured on the same machine on the same day.

| Date | Commit | Python | Ms a call | of Inspect's | Frames | Again | Report | Again | Floor |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def commit() -> str:
    """Return the checkout's commit, with a + if files of the package have changed since."""
    words = ("git", "describe", "--always", "--abbrev=7", "--dirty=+", "--exclude=*")
    return subprocess.run(words, cwd=TABLE.parent.parent, check=True, capture_output=True, text=True).stdout.strip()


def row(cost: overhead.Overhead, times: dict[str, float]) -> str:
    cells = (
        f"{datetime.now(UTC):%Y-%m-%d}",
        commit(),
        platform.python_version(),
        f"{cost.own:.2f}",
        f"{cost.ratio:.2f}",
        *(f"{times[stage]:.2f}" for stage in report.WORDS if stage != "loop"),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    line = row(overhead.main(overhead.ROUNDS), report.main(report.ROUNDS))
    rows = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else HEAD.splitlines()
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join([*rows, line]) + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
