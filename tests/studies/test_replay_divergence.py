"""Replay divergence by hand: between two models, beyond each one's own spread, and of what a boundary commits."""

from __future__ import annotations

from typing import Any

import pytest

from bench.models.bank import BankedReply
from bench.studies.replay_divergence import LESS, ComparedEvent, _local, divergence


def reply(value: int, rejected: str = "", note: str = "", instance: str = "a") -> BankedReply:
    output: dict[str, Any] = {"discount": value, "reason": note}
    return BankedReply("p", instance, "offer", "s", 1, {"discount": 1}, output, rejected, "", ("reason",))


def test_divergence_is_between_two_models_less_the_mean_of_what_two_seeds_of_each_differ_in() -> None:
    """Of four pairs three differ; of each model's single pair one differs and none does."""
    found = divergence("local", "none", "offer", [ComparedEvent("a", [1, 2], [1, 1])])
    assert found.between is not None and found.within is not None
    assert (found.between.value, found.within.value, found.beyond.value) == (0.5, 0.5, 0.0)
    apart = divergence("local", "none", "offer", [ComparedEvent("a", [1, 1], [2, 2])])
    assert (apart.beyond.value, apart.first) == (1.0, None)


def test_running_divergence_is_about_the_effects_at_the_end_and_names_the_first_that_differs() -> None:
    found = divergence(
        "running", "full", "", [ComparedEvent("a", [("open", "pay 3"), ("open", "pay 3")], [("open", "pay 4")] * 2)]
    )
    assert (found.beyond.value, found.first) == (1.0, 2.0)
    reordered = divergence("running", "full", "", [ComparedEvent("a", [("x", "y")] * 2, [("y", "x")] * 2)])
    assert reordered.beyond.value == 0.0


@pytest.mark.parametrize(("strength", "beyond"), [("none", 1.0), ("business_rule", 0.0), (LESS, 1.0)])
def test_a_boundary_that_rejects_both_commits_nothing_and_free_text_is_left_out(strength: str, beyond: float) -> None:
    replies = [("A", reply(2, "check", "x")), ("A", reply(2, "check", "y")), ("B", reply(3, "check")), ("B", reply(3, "check"))]
    [found] = [one for one in _local(["A", "B"], replies) if (one.boundary, one.place) == (strength, "")]
    assert found.beyond.value == beyond
