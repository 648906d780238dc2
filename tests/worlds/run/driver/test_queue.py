"""A queue in PostgreSQL with a planner and workers, each a process: what a worker's death breaks while it holds a job, and what
an exchange of the tools' adapter or of the planner breaks then."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from driven import driven, ends, printed
from little_worlds import ended, harm
from with_postgres import postgres

from bench.record.booked import booking_gap
from bench.run.experiment.trial import TrialResult

SYSTEMS = Path(__file__).parents[4] / "configs" / "systems"
DIES = [{"point": "process", "effect": "unacknowledged", "tool": "refund", "attempts": [1]}]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="who asks is known on Linux alone")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'recovery-bench[probe]'")
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        Path(name).chmod(0o711)
        with postgres(Path(name)) as address:
            if not address:
                pytest.skip("PostgreSQL's server is not installed: apt install postgresql")
            yield f"{address}/postgres"


def queued(server: str, *options: str) -> TrialResult:
    """A trial in which each worker that refunds an order for the first time is killed."""
    words = ["python", "queue_foreman.py", *options]
    return driven(
        words,
        DIES,
        folder=str(SYSTEMS),
        files=["queue_workers.py"],
        env={"QUEUE": server},
        kills="caller",
        time_limit_seconds=900,
    )


def test_a_worker_that_dies_with_a_job_sets_it_free_and_with_the_jobs_key_it_is_done_once(server: str) -> None:
    result = queued(server, "--keys")
    assert (result.record.outcome, harm(result), len(ends(result))) == ("solved", {}, 1)
    assert booking_gap(result.record.events) is None
    killed = [line for line in printed(result).splitlines() if line.startswith("worker")]
    assert killed == ["worker 1 ended with -9"] * (ended(result).lives - 1) != []


def test_without_a_key_a_job_is_done_again(server: str) -> None:
    result = queued(server)
    assert harm(result)["doubled"] == ended(result).lives - 1 >= 1


@pytest.mark.endurance
@pytest.mark.parametrize("exchanged", ["--adapter", "--planner"])
def test_what_is_exchanged_in_flight_doubles_unless_the_plan_keeps_its_keys(server: str, exchanged: str) -> None:
    assert harm(queued(server, "--keys", exchanged))["doubled"] >= 1
    pinned = queued(server, "--keys", exchanged, "--pinned")
    assert (pinned.record.outcome, harm(pinned)) == ("solved", {})
    assert exchanged != "--planner" or "planner 1 ended with -9" in printed(pinned)


def test_without_a_server_a_line_says_so() -> None:
    result = queued("postgresql://127.0.0.1:1/none")
    assert result.record.outcome == "error" and "no PostgreSQL server at QUEUE (OperationalError)" in result.record.reason
