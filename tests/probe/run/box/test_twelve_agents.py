"""Twelve agents in their boxes: what is theirs stays as it was, what they write outside of a store is named, and nothing of
them runs on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import sleep

import pytest
from twelve_agents import AGENTS, BoxedAgent, digests, made
from waiting import wait_until

from bench.probe.read.run import read_probe
from tests.probe.run.box.boxed import marked

BENCH = Path(sys.executable).with_name("bench")
KILLS = 20
TABLE = "CREATE TABLE paid (id serial PRIMARY KEY, cents integer)"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path


def database(server: str, name: str) -> str:
    """Make a database on the server, and return its DSN."""
    import psycopg  # noqa: PLC0415  an extra

    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        session.execute(f'DROP DATABASE IF EXISTS "{name}"'.encode())
        session.execute(f'CREATE DATABASE "{name}"'.encode())
    with psycopg.connect(dsn := f"{server} dbname={name}") as session:
        session.execute(TABLE)
    return dsn


def rows_in(dsn: str) -> int:
    import psycopg  # noqa: PLC0415  an extra

    with psycopg.connect(dsn) as session:
        row = session.execute("SELECT count(*) FROM paid").fetchone()
        assert row
        return int(row[0])


def laid_out(agent: BoxedAgent, base: Path, request: pytest.FixtureRequest) -> tuple[Path, str]:
    """Return the folder of an agent, and the DSN of its database, or skip."""
    dsn = ""
    if agent.needs == "postgres":
        dsn = database(request.getfixturevalue("server"), "box")
    elif agent.needs and not shutil.which(agent.needs):
        pytest.skip(f"{agent.needs} is not installed")
    return made(agent, base, dsn), dsn


def variables(folder: Path) -> Mapping[str, str]:
    home = folder.parent / "home"
    return {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(folder.parent / "state"), "A_MARK": str(folder)}


def probing(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start a probe as a user does."""
    asked = [str(BENCH), "probe", "--yes", "--name", "twelve", *words]
    output = subprocess.PIPE
    return subprocess.Popen(asked, cwd=folder, env=variables(folder), stdout=output, stderr=subprocess.STDOUT, text=True)


def nothing_runs(folder: Path) -> bool:
    """Return whether no process of a probe in this folder runs."""
    return not marked(f"A_MARK={folder}")


def only(agent: BoxedAgent) -> list[str]:
    return [word for cell in agent.cells for word in ("--only", cell)]


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_what_is_the_owners_stays_and_what_is_written_outside_of_a_store_is_named(
    agent: BoxedAgent, base: Path, request: pytest.FixtureRequest
) -> None:
    folder, dsn = laid_out(agent, base, request)
    before = digests(base)
    with probing(folder, *only(agent)) as probe:
        printed, _ = probe.communicate()
    assert probe.returncode in (0, 1, 3), printed
    read = read_probe(folder / "results" / "twelve")
    assert read.probed.boxed and {cell.plan.rpartition(".")[2] for cell in read.cells.values()} == {"lost", "unacknowledged"}
    assert read.planned and read.planned.written == agent.outside
    assert all(name in printed for name in agent.outside)
    assert digests(base) == before
    wait_until(partial(nothing_runs, folder))
    assert not dsn or rows_in(dsn) == 0


@pytest.mark.slow
def test_after_twenty_kills_of_the_probe_all_is_as_it_was_and_nothing_runs(base: Path, request: pytest.FixtureRequest) -> None:
    draws = random.Random(70)
    for number in range(KILLS):
        agent = AGENTS[number % len(AGENTS)]
        if agent.needs and agent.needs != "postgres" and not shutil.which(agent.needs):
            continue
        (place := base / f"kill{number}").mkdir()
        folder, dsn = laid_out(agent, place, request)
        before = digests(place)
        with probing(folder, *only(agent)) as probe:
            sleep(draws.uniform(1.0, 8.0))
            probe.send_signal(signal.SIGKILL)
            probe.communicate()
        wait_until(partial(nothing_runs, folder))
        assert digests(place) == before, agent.name
        assert not dsn or rows_in(dsn) == 0
