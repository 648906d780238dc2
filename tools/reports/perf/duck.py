"""What DuckDB takes to read a run's trials and to group trials and calls by arm, beside what our frames of the run take.

Each is a process of its own, on one thread. The frames are read with an empty cache folder, and again.

    PYTHONPATH=tools/reports python -m perf.duck RUN
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

EVENT = "STRUCT(kind VARCHAR, tokens_in BIGINT, tokens_out BIGINT, seconds DOUBLE)"
COLUMNS = f"""{{kind: 'VARCHAR', scenario: 'VARCHAR', model: 'VARCHAR', plan: 'VARCHAR', architecture: 'VARCHAR',
    tokens: 'BIGINT', api_seconds: 'DOUBLE', events: '{EVENT}[]'}}"""
"""What is read of a line; DuckDB passes over the rest."""
ARM = "scenario, model, plan, architecture"
TRIALS = f"SELECT {ARM}, count(*), avg(tokens), stddev(tokens), avg(api_seconds), stddev(api_seconds) FROM trials GROUP BY ALL"
CALLS = f"""SELECT {ARM}, count(*), avg(e.tokens_in), stddev(e.tokens_in), avg(e.tokens_out), stddev(e.tokens_out),
    avg(e.seconds), stddev(e.seconds) FROM (SELECT {ARM}, unnest(events) AS e FROM trials) WHERE e.kind = 'call' GROUP BY ALL"""


def grouped(run: str) -> None:
    """Print trials and calls by arm: how many, mean and sd of tokens and of seconds."""
    import duckdb  # noqa: PLC0415  the process of the frames does not load it

    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        read = "read_json(?, format = 'newline_delimited', maximum_object_size = 268435456, columns = " + COLUMNS + ")"
        database.execute(f"CREATE TEMP TABLE trials AS SELECT * FROM {read} WHERE kind = 'trial'", [f"{run}/trials.jsonl"])
        for query in (TRIALS, CALLS):
            print(database.execute(query).fetchall())


def main(run: Path) -> None:
    """Print seconds of the processor, and MiB, of the three processes."""
    from perf.report import cost_of  # noqa: PLC0415  DuckDB's process has no need of it

    frames, here = str(Path(__file__).with_name("report.py")), str(Path(__file__).resolve())
    commands = {
        "DuckDB: read and group": (here, "grouped", str(run)),
        "frames": (frames, "frames", str(run)),
        "frames again, from the cache": (frames, "frames", str(run)),
    }
    with tempfile.TemporaryDirectory() as name:
        costs = {words: cost_of(*command, folder=Path(name), cache=Path(name)) for words, command in commands.items()}
    first = costs["DuckDB: read and group"].cpu
    for words, cost in costs.items():
        print(f"{words:30} {cost.cpu:8.2f} s of the processor {cost.peak:6.0f} MiB {cost.cpu / first:6.2f} times DuckDB")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["grouped", run]:
            grouped(run)
        case [run]:
            main(Path(run).resolve())
        case _:
            sys.exit("give a run's folder: python -m perf.duck results/RUN")
