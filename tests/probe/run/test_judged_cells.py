"""What the verdicts of a probe say together, also after a control took some of them back."""

from __future__ import annotations

from bench.common.digests import digest_of
from bench.probe.run.judged_cells import JudgedCells
from bench.probe.run.writing import CellRun
from bench.record.probe_events import CellJudged, GatewayCall

PLAN = "bank.pay#1.lost"
DOUBLED = CellJudged("bank.pay#1", "lost", "", "effect", 1, "doubled", said_done=True, printed=None)


def call(number: int) -> GatewayCall:
    empty = digest_of("")
    return GatewayCall(
        number=number,
        name="bank.pay#1",
        door="bank",
        door_kind="mcp",
        tool="pay",
        call_class="effect",
        reads=False,
        arguments=empty,
        answer=empty,
        life=1,
        wire="1",
        arrived=0.0,
        passed_on=0.0,
        answered=0.0,
        given=0.0,
        failed=False,
        point=None,
        form="",
        given_otherwise=False,
        went="",
        continues=None,
        tokens_in=0,
        tokens_out=0,
        model="",
        idempotent=False,
        key="",
    )


def test_the_calls_of_a_damaged_run_that_lost_its_verdict_blame_no_part() -> None:
    judged_cells = JudgedCells()
    for repetition in range(2):
        judged_cells.add(CellRun(PLAN, repetition, (call(repetition), DOUBLED), {}, 1.0))
    assert [each.number for each in judged_cells.damaged_calls(PLAN)] == [0]
    judged_cells.void([(PLAN, 0)])
    assert judged_cells.is_damaged(PLAN)
    assert [each.number for each in judged_cells.damaged_calls(PLAN)] == [1]
    judged_cells.void([(PLAN, 1)])
    assert not judged_cells.is_damaged(PLAN)
