"""Replay divergence by hand: between two models, beyond each one's own spread, and of what a boundary commits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_runs import run_of_matrix
from trials import ROOTS

from bench.rerun.divergence import ComparedEvent, divergence, name_states
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.models.bank import BankedReply
from studies.replay_divergence.study import LESS, ComparedSides, _local, _look, tables


def reply(value: int, rejected: str = "", note: str = "", instance: str = "a") -> BankedReply:
    output: dict[str, Any] = {"discount": value, "reason": note}
    return BankedReply("p", instance, "offer", "s", 1, {"discount": 1}, output, rejected, "", ("reason",))


def test_divergence_is_between_two_models_less_the_mean_of_what_two_seeds_of_each_differ_in() -> None:
    """Of four pairs three differ; of each model's single pair one differs and none does."""
    result = divergence("local", "none", "offer", [ComparedEvent("a", [1, 2], [1, 1])])
    assert result.between is not None and result.within is not None
    assert (result.between.value, result.within.value, result.beyond.value) == (0.5, 0.5, 0.0)
    apart = divergence("local", "none", "offer", [ComparedEvent("a", [1, 1], [2, 2])])
    assert (apart.beyond.value, apart.first) == (1.0, None)


def test_running_divergence_is_about_the_effects_at_the_end_and_names_the_first_that_differs() -> None:
    result = divergence(
        "running", "full", "", [ComparedEvent("a", [("open", "pay 3"), ("open", "pay 3")], [("open", "pay 4")] * 2)]
    )
    assert (result.beyond.value, result.first) == (1.0, 2.0)
    reordered = divergence("running", "full", "", [ComparedEvent("a", [("x", "y")] * 2, [("y", "x")] * 2)])
    assert reordered.beyond.value == 0.0


@pytest.mark.parametrize(("strength", "beyond"), [("none", 1.0), ("business_rule", 0.0), (LESS, 1.0)])
def test_a_boundary_that_rejects_both_commits_nothing_and_free_text_is_left_out(strength: str, beyond: float) -> None:
    replies = [("A", reply(2, "check", "x")), ("A", reply(2, "check", "y")), ("B", reply(3, "check")), ("B", reply(3, "check"))]
    [result] = [
        each for each in _local(ComparedSides("model", ["A", "B"]), replies) if (each.boundary, each.place) == (strength, "")
    ]
    assert result.beyond.value == beyond


def test_two_prompts_of_one_model_are_compared_state_by_state_in_their_order() -> None:
    """What a state holds is told otherwise, so that its digest is another."""

    def state_reply(scenario: str, state: str, value: int, repetition: int) -> tuple[str, BankedReply]:
        return "A", BankedReply(scenario, "a", "offer", state, repetition, {}, {"discount": value}, "", "")

    plain = [state_reply("p", state, value, seed) for seed in (1, 2) for state, value in (("s", 1), ("t", 2))]
    worded = [state_reply("p:epsilon_2", state, value, seed) for seed in (1, 2) for state, value in (("x", 1), ("y", 3))]
    measured = _local(ComparedSides("scenario", ["p", "p:epsilon_2"]), [*plain, *worded])
    unchecked = next(each for each in measured if (each.boundary, each.place) == ("none", ""))
    assert (unchecked.events, unchecked.beyond.value) == (2, 0.5)
    assert [state for _, _, state in name_states(plain, of_prompts=True)] == ["1", "2", "1", "2"]
    assert [state for _, _, state in name_states(plain, of_prompts=False)] == ["s", "t", "s", "t"]


@pytest.mark.usefixtures("undrawn")
def test_two_prompts_of_one_model_are_compared_in_every_named_state(
    tmp_path: Path,
) -> None:
    config = load_config(ROOTS[0].parent / "studies" / "replay_divergence" / "paraphrase.toml", {"instances": 1})
    run = run_of_matrix(tmp_path, build_matrix(config, ROOTS[:1], "code"))
    [table, _] = tables(run)
    assert table.name == "study-replay-divergence-local-prompts"
    assert "contract_renewal and contract_renewal:epsilon_2" in table.title and "SIMULATED" in table.title
    asked = run.calls[(run.calls["scenario"] == "contract_renewal") & (run.calls["repetition"] == 1)]
    assert table.texts()[0][6] == str(len(asked))


def events(none: list[object], rules: list[object], instances: int = 8) -> list[list[ComparedEvent]]:
    """In each instance both sides give these two replies each: first one side's, then the other's."""
    return [[ComparedEvent(str(n), each[:2], each[2:]) for each in (none, rules)] for n in range(instances)]


def test_that_two_sides_agree_in_doing_nothing_is_no_smaller_divergence() -> None:
    """Without a check each reply differs from the other side's; under the rules nothing is committed by either."""
    look = replace(_look("offer", events([1, 1, 2, 2], [None] * 4)), adjusted=(0.001, 0.001))
    assert (look.idle, look.gaps[0].contrast.value, look.gaps[1].could_differ) == (1.0, 1.0, 0)
    half = events([1, 1, 2, 2], [None] * 4, 4) + events([1, 1, 1, 1], [1, 1, 2, 2], 4)
    mixed = [[replace(event, instance=f"{n}") for event in both] for n, both in enumerate([*half, *half[:4]])]
    look = replace(_look("offer", mixed), adjusted=(0.001, 0.001))
    assert look.gaps[0].contrast.value == pytest.approx((8 - 4) / 12) and look.gaps[1].contrast.value == -1.0
    assert look.idle == pytest.approx(8 / 12) and look.gaps[1].could_differ == 4


def test_a_verdict_that_does_not_stand_without_idle_pairs_is_refused() -> None:
    varied = [
        [ComparedEvent(str(n), [1, 1], [2, 2]), ComparedEvent(str(n), [None, None], [None, None] if n % 4 else [2, 2])]
        for n in range(12)
    ]
    look = replace(_look("offer", varied), adjusted=(0.001, 0.001))
    assert look.gaps[0].contrast.low is not None and look.gaps[0].contrast.low > 0
    assert look.verdict == "not comparable: it does not stand without the pairs in which neither side did anything"
    assert replace(look, adjusted=(0.2, 0.2)).verdict == "inconclusive", "of many looks one may find it by chance"
