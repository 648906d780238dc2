"""What is run again before anything is claimed."""

from __future__ import annotations

from bench.probe.run.cells import ProbeCell
from bench.probe.run.gateway.fault_injector import CellFault
from bench.probe.run.judged_cells import same_verdict
from bench.probe.run.probe import cells_to_repeat
from bench.record.probe_events import CellFinding, CellJudged, CellVerdict

CELLS = [
    ProbeCell(f"shop.pay#{n}.lost", f"shop.pay#{n}", "lost", "break", CellFault(str(n), 1, "lost", "break"))
    for n in range(1, 13)
]


def judged(verdict: CellVerdict, effect: str = "shop.pay#1", times: int = 2) -> CellJudged:
    findings = (CellFinding("doubled", effect, times, (), (1,)),) if verdict == "doubled" else ()
    return CellJudged("", "lost", "break", "effect", 1, verdict, True, None, findings)


def test_two_runs_came_out_the_same_if_the_verdict_and_the_effects_are_the_same() -> None:
    assert same_verdict(judged("doubled"), judged("doubled")) and same_verdict(judged("same"), judged("same"))
    assert same_verdict(judged("doubled", times=547), judged("doubled", times=458))
    assert not same_verdict(judged("doubled"), judged("same"))
    assert not same_verdict(judged("doubled"), judged("doubled", "shop.pay#2"))


def test_the_drawn_cells_are_ten_and_the_same_each_time() -> None:
    assert len(cells_to_repeat(CELLS, "a")) == 10
    assert cells_to_repeat(CELLS, "a") == cells_to_repeat(CELLS, "a")
    assert cells_to_repeat(CELLS[:4], "a")
