"""What holds for every architecture of ours holds for the systems under test: under every fault no trial ends in an error,
every planned fault is followed to its end, and the ledger adds up to what the endpoint counted."""

from __future__ import annotations

from importlib import util

import pytest
from trials import CELLS, SYSTEMS, events, matrix_of, needs_json, run_all, stages

from bench.record.events import Called
from bench.record.ledger import book, imbalance
from tests.run.frameworks.test_systems import BROUGHT, IN_ONE
from tests.suite.test_conformance import LAWFUL, assert_lineage_is_closed, assert_texts_are_kept

pytestmark = pytest.mark.slow
INSTALLED = [name for name, system in SYSTEMS.items() if not system.extra or util.find_spec(BROUGHT[system.extra])]
PASSING = {"rate_limit": 0.01, "server_error": 0.0, "timeout": 0.01, "cut_off": 0.0, "slow": 0.01}
"""The API's failures, and how many seconds they take: the clients wait in real time."""

READ_BY_THEMSELVES = ("reflexion", "autogen_graph", "autogen_team", "sre_agent_monolith")
"""What one subtask reads of another never passes the workbench. And who asks for three subtasks at once meets the failures of
all three, one more than the two retries of OpenAI's client."""


@pytest.mark.parametrize(("effect", "point"), CELLS)
@pytest.mark.parametrize("name", INSTALLED)
def test_under_every_fault_a_system_ends_lawfully_and_its_record_adds_up(
    name: str, effect: str, point: str, capfd: pytest.CaptureFixture[str]
) -> None:
    seconds = {"seconds": PASSING[effect]} if PASSING.get(effect) else {}
    fault = {"point": point, "effect": effect, "attempts": [1], **seconds}
    [result] = run_all(matrix_of(plans={"plan": [fault]}, model={"wrapping": False}, architectures=[name]))
    record = result.record
    assert capfd.readouterr() == ("", ""), "a framework writes into our progress"
    assert record.outcome != "error", record.reason
    assert sum(call.tokens_in + call.tokens_out for call in events(result, Called)) == record.tokens
    assert imbalance(book(record.events), record.tokens) is None
    assert {tuple(way) for way in stages(result).values()} <= LAWFUL
    unexposed = name in READ_BY_THEMSELVES and point == "input" and needs_json(effect, point)
    assert bool(stages(result)) is not unexposed
    assert_texts_are_kept(result)
    assert_lineage_is_closed(result)
    if effect in PASSING:
        tried_too_often = name in IN_ONE and effect != "slow"
        assert record.outcome == ("gave_up" if tried_too_often else "solved"), record.reason


@pytest.mark.parametrize("name", INSTALLED)
def test_a_systems_own_retries_end_where_every_request_is_refused(name: str) -> None:
    fault = {"point": "call", "effect": "rate_limit", "attempts": "every", "seconds": 0.01}
    [result] = run_all(matrix_of(plans={"plan": [fault]}, model={"wrapping": False}, architectures=[name]))
    asked = events(result, Called)
    assert result.record.outcome == "gave_up", result.record.reason
    assert all(call.failure == "rate_limited" for call in asked)
    assert set(map(tuple, stages(result).values())) == {("planned", "delivered", "detected", "gave_up")}
    assert len(asked) == len(stages(result)) < 20
