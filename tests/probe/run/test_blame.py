"""Which part is to blame: a small agent's cells are run again with parts mended at the gateway."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from till import MadeProbe, probed, till

from bench.probe.read.blame import CellBlame, blame_of, first_mends
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import CellJudged, GatewayCall

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")


def blame(runs: Sequence[CellRun], plan: str = "") -> CellBlame:
    """Return the blame of the runs, or of those of one cell."""
    mended = [run.judgement for run in runs if run.judgement and run.judgement.mended and run.plan.startswith(plan)]
    shown = blame_of("pay", mended)
    assert shown
    return shown


def sets(runs: Sequence[CellRun], plan: str = "") -> list[set[str]]:
    return [set(each) for each in blame(runs, plan).minimal]


def test_a_client_that_asks_again_without_a_key_is_blamed_with_the_key(asks_again: MadeProbe) -> None:
    assert sets(asks_again.runs) == [{"key"}, {"client"}]
    mended = next(run for run in asks_again.runs if run.plan == "till.charge#1.lost+key")
    again = next(call for call in of_kind(mended.events, GatewayCall) if call.repeats)
    assert (again.passed_on, again.given is not None, again.given_otherwise) == (None, True, True)


def test_an_agent_that_begins_anew_is_blamed_for_its_memory_or_its_key(begins_anew: MadeProbe) -> None:
    assert sets(begins_anew.runs) == [{"key"}, {"memory"}]


def test_a_part_that_an_ended_probe_has_not_asked_yet_is_said_to_wait_and_not_to_have_had_no_cause(
    begins_anew: MadeProbe,
) -> None:
    runs = begins_anew.runs
    struck = next(run for run in runs if run.judgement and run.judgement.point)
    key = [run.judgement for run in runs if run.judgement and run.judgement.mended == ("key",)]
    shown = blame_of("pay", key, first_mends(list(of_kind(struck.events, GatewayCall))))
    assert shown and shown.waiting == ("memory",) and shown.sentence.endswith(" Not asked yet: memory.")
    assert "the agent was not killed" not in shown.rest


def test_who_acts_on_a_damaged_answer_of_a_read_is_told_to_check_it_and_not_to_read_once() -> None:
    read = CellJudged("shop.GET /payments#1", "too_large", "", "read", 2, "same", said_done=True, printed=None)
    judged = replace(read, mended=("client",))
    shown = blame_of("shop.POST /payments", [judged])
    assert shown and shown.sentence.startswith("To blame: client. Check what shop.GET /payments answered before")
    shown = blame_of("shop.POST /payments", [replace(judged, call_class="effect")])
    assert shown and "Let no client make shop.POST /payments again" in shown.sentence


def test_a_tool_that_does_a_call_twice_is_blamed_alone_and_the_rest_is_not_cleared(over_http: MadeProbe) -> None:
    tool = blame(over_http.runs, "shop.POST /payments#1.twice")
    assert (tool.minimal, tool.parts_cleared) == ((frozenset({"tool"}),), [])
    assert tool.sentence.startswith("To blame: tool. Let the tool do pay once")
    assert "memory (the agent was not killed)" in tool.rest


def test_over_http_a_model_that_asks_again_is_blamed_with_the_key(over_http: MadeProbe) -> None:
    assert sets(over_http.runs, "shop.POST /payments#1.lost") == [{"key"}, {"reply"}]


def test_a_probe_that_is_taken_up_again_mends_only_what_is_missing(asks_again: MadeProbe) -> None:
    first = asks_again.runs[:6]
    assert first[-1].plan == "till.charge#1.lost+key"
    rest = probed(asks_again.folder, asks_again.subject, "charge#1.lost", kept=first)
    assert [run.plan for run in rest if run.plan != "control"] == ["till.charge#1.lost+client"]
    assert sets([*first, *rest]) == [{"key"}, {"client"}]


def test_an_agent_that_looks_while_its_request_is_in_flight_is_blamed_for_that_look_or_its_key(tmp_path: Path) -> None:
    runs = probed(tmp_path, till(tmp_path, "looks"), "charge#1.in_flight")
    assert [run.judgement.verdict for run in runs if run.judgement and run.plan == "till.charge#1.in_flight"] == ["doubled"] * 2
    assert sets(runs) == [{"key"}, {"look"}]
