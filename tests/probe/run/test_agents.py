"""Small agents at each point, beside what queries of our own read after each run: is the verdict what stands?"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from payers import Shown, State, payer_of, shown

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")
SOUND = frozenset[str]()
LUA = ("lost", "unacknowledged", "acknowledged")
LE, LU = ("lost.error",), ("lost", "unacknowledged")
AGENTS = {
    "insists brief": (
        (*LUA, "lost.error", "late", "twice", "killed_before", "error"),
        {*LUA, "lost.error", "late", "twice"},
    ),
    "two insists": (("acknowledged_next",), {"acknowledged_next"}),
    "batch insists": ((*LUA, "twice"), {*LUA, "twice"}),
    "loose insists": ((*LUA, "twice"), {*LUA, "twice"}),
    "fresh insists": ((*LUA, "twice"), {*LUA}),
    "keyed insists": ((*LUA, "twice", "killed_before", "error"), SOUND),
    "stored insists": ((*LUA, "killed_before"), SOUND),
    "intent": (("unacknowledged", "twice", "killed_before"), {"twice", "killed_before"}),
    "equal keyed": (("lost", "unacknowledged", "killed_before"), SOUND),
    "equal": (("unacknowledged", "killed_before"), {"unacknowledged"}),
    "puts insists": ((*LU, "killed_before"), SOUND),
    "parallel": (LU, {"unacknowledged"}),
    "looks": ((*LU, "killed_before"), SOUND),
    "shuffled keyed insists": ((*LU, "killed_before"), SOUND),
    "child insists": ((*LU, "killed_before"), {*LU}),
    "child alone insists": (LU, {*LU}),
    "soon keyed insists": (LE, SOUND),
    "waits keyed insists": (LE, {*LE}),
    "sdk": (LU, {*LU}),
    "rates insists": (LUA, {*LUA}),
    "two rates insists": (("2.lost", "2.unacknowledged"), {"2.lost", "2.unacknowledged"}),
    "two rates keyed insists": (("2.lost", "2.unacknowledged", "2.acknowledged"), SOUND),
    "log insists": (LUA, {*LUA}),
    "log anew insists": (LU, {*LU}),
}
"""Agent -> the points, and those at which something stands another number of times than in clean runs."""


def harm(clean: State, now: State) -> int:
    """Return 1 where something stands more than in clean runs, -1 where it stands less, else 0."""
    more, less = (any(a.get(name, 0) > b.get(name, 0) for name in a) for a, b in ((now, clean), (clean, now)))
    return 1 if more else -1 if less else 0


@pytest.mark.parametrize("mode", AGENTS)
def test_the_verdict_on_an_agent_is_what_our_own_queries_read(tmp_path: Path, mode: str) -> None:
    points, harmed = AGENTS[mode]
    clean, cells = asyncio.run(shown(tmp_path, payer_of(tmp_path, mode), *points))
    assert {*cells} == {*points}
    truth = {point: harm(clean, cell.state) for point, cell in cells.items()}
    assert {point for point, what in truth.items() if what} == harmed
    for point, cell in cells.items():
        assert cell.judged.verdict in expected(cell, truth[point]), (point, cell.judged, cell.state)


@pytest.mark.parametrize(
    ("mode", "says"), [("keyed insists", "its key stayed the same"), ("puts insists", "PUT is idempotent, as its server or")]
)
def test_a_call_that_is_made_again_soundly_and_that_no_witness_sees_is_no_damage(tmp_path: Path, mode: str, says: str) -> None:
    subject = payer_of(tmp_path, mode)
    subject = replace(subject, agent=replace(subject.agent, done=(sys.executable, "-c", "")))
    clean, cells = asyncio.run(shown(tmp_path, subject, "lost", "unacknowledged", witnessed=("log",)))
    assert len(cells) == 2
    for cell in cells.values():
        assert cell.state == clean and sum(name.startswith(("paid", "bill b")) for name in clean) == 1
        assert (cell.judged.verdict, cell.judged.by, cell.judged.is_damage) == ("repeated", "journal", False)
        assert cell.judged.why.startswith("nobody saw what it did; ") and says in cell.judged.why


def expected(cell: Shown, what: int) -> set[str]:
    if what > 0:
        return {"doubled"}
    if what < 0:
        return {"lost" if cell.judged.said_done else "gave_up"}
    return {"same", "absorbed"}
