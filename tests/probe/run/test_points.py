"""Each point is one entry, and another package's point needs nothing of ours but an entry point."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from payers import payer_of
from plugged import install, plugged

from bench.probe.points import POINTS, StrikePoint, point_of, points_of
from tests.probe.run.gateway.test_fault_injector import Counter
from tests.probe.run.test_states import first, probed

DOCS = Path(__file__).parents[3] / "docs" / "probe.md"
ENTRY = 'StrikePoint("too_busy", "{} is done and its server says that it is too busy", ("effect",), after="error")'


DONE = defaultdict(int, {"pass": 1, "twice": 2, "again": 2})
"""How often a call is done, by its fate."""


@pytest.fixture
def too_busy(tmp_path: Path) -> Iterator[None]:
    """A package that brings a point, as if it was installed."""
    module = f"from bench.probe.points import StrikePoint\nPOINT = {ENTRY}\n"
    install(tmp_path / "site", "busy", {"recovery_bench.points": {"too_busy": "busy:POINT"}}, {"busy.py": module})
    with plugged(tmp_path / "site"):
        yield


@pytest.mark.usefixtures("too_busy")
def test_each_point_strikes_the_call_as_its_entry_says() -> None:
    async def struck(point: StrikePoint, form: str) -> None:
        counter = Counter(point.name, form)
        if point.after == "stale":
            return  # its test is in test_fault_injector: it needs a read that was made before
        before, after = await counter.call("ada")
        following = await counter.call("bob")
        assert counter.gate.is_delivered and counter.gate.struck_call and counter.gate.struck_call.point == point.name
        death = point.death_in.get(form, point.death)
        assert counter.deaths == bool(death)
        dropped = death in ("arrived", "done")
        assert before == ("drop" if death == "arrived" else point.before)
        assert counter.ledger.paid.count("ada") == DONE[before]
        if not dropped and before in ("pass", "twice", "again"):
            assert after == point.forms.get(form, point.after)
        assert following == (("drop", "drop") if death else ("pass", "give"))

    for point in POINTS:
        for form in point.forms or ("",):
            asyncio.run(struck(point, form))
    assert "too_busy" in POINTS


def test_each_point_of_ours_is_in_the_documentation_and_strikes_some_class_of_calls() -> None:
    documented = DOCS.read_text(encoding="utf-8")
    for point in POINTS:
        assert f"`{point.name}`" in documented
        assert point.when.count("{}") == 1 and point.of


@pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")
@pytest.mark.usefixtures("too_busy")
def test_a_strangers_point_finds_what_an_agent_does_twice(tmp_path: Path) -> None:
    judged = first(probed(tmp_path, payer_of(tmp_path, "again"), "#1.too_busy"), "pay.POST /pay#1.too_busy")
    assert (judged.verdict, judged.point) == ("doubled", "too_busy")
    assert points_of("effect")[-1].name == "too_busy"


def test_a_point_whose_package_is_gone_is_named_by_its_recording() -> None:
    assert "too_busy" not in POINTS
    assert point_of("too_busy").when == "{} is struck at too_busy"


def test_an_entry_that_says_what_no_door_does_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'late' says after = 'lat'; .*late"):
        StrikePoint("late", "{} is late", ("effect",), after="lat")  # type: ignore[arg-type]
