"""The pack payment_run: the same everywhere, its right course is right, and each wrong payment does harm."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from pathlib import Path

import pytest

from bench.run.packs import load_pack
from bench.worlds.run.environment import Environment, World, final_world
from scenarios.payment_run.grader import grade
from scenarios.payment_run.scenario import slips
from scenarios.payment_run.story import story

ROOTS = [Path(__file__).parents[2] / "scenarios"]
RUNS = [f"run_{number:02}" for number in range(1, 21)]
SHA256 = "0c324a95cddffd14833f5869205a45624e2401427b79b5208ea117ef85c92953"
"""Of all runs."""


def world_of(name: str = "payment_run") -> Environment:
    environment = load_pack(name, ROOTS, "run_01").environment
    assert isinstance(environment, Environment)
    return environment


def test_every_run_is_the_same_everywhere() -> None:
    made = json.dumps([[vars(invoice) for invoice in story(run, 80)] for run in RUNS])
    assert hashlib.sha256(made.encode()).hexdigest() == SHA256


def test_a_shorter_run_has_the_first_invoices_of_a_longer_one() -> None:
    assert story("run_07", 80)[:5] == story("run_07", 5)


def test_the_first_invoice_of_each_run_has_a_credit_and_no_payment_is_below_one() -> None:
    for run in RUNS:
        invoices = story(run, 80)
        assert invoices[0].credit and all(invoice.gross > invoice.credit for invoice in invoices)


@pytest.mark.parametrize("slip", ["gross_paid", "other_account", "doubled_amount"])
def test_a_wrong_payment_stands_where_it_ought_not_to_and_the_right_one_is_lost(slip: str) -> None:
    first, environment = story("run_01", 5)[0], world_of()
    with closing(World(environment)) as world:
        environment.reference(world)
        assert world.damage()[1].total == 0
        right = {"number": 1, **first.payment}
        assert world.call("recall", right).ok and world.call("pay", {"number": 1, **slips(first)[slip][1]}).ok
        journal, tables = world.damage()
        assert (journal.lost, journal.uncompensated) == (1, 1) and journal.agrees(tables)
        assert bool(journal.unauthorised) == (slip != "gross_paid")
        truth = [[invoice.number, *invoice.payment.values()] for invoice in story("run_01", 5)]
        assert not grade(final_world(world.snapshot().content), truth).correct


def test_what_is_no_invoice_and_what_does_not_stand_is_refused() -> None:
    with closing(World(world_of())) as world:
        assert not world.call("read_invoice", {"number": 6}).ok
        assert not world.call("recall", {"number": 1, "amount": 5, "account": "domestic"}).ok


def test_each_step_comes_after_the_one_before() -> None:
    steps = world_of("payment_run:80").procedure
    assert len(steps) == 80 and steps[0].on == "run_opened"
    assert [step.after for step in steps[1:]] == [(step.name,) for step in steps[:-1]]
