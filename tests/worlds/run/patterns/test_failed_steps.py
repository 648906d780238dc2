"""A step that came to nothing: what goes by it comes to nothing too, and the trial ends with its grade."""

from __future__ import annotations

from trials import ROOTS, run_all
from trips import PATTERNS

from bench.record.world_events import ToolCalled
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix


def test_where_a_signal_was_never_read_no_risk_is_judged_and_none_is_scored() -> None:
    """No pattern reads the network in six tries: the judgment that is shown it is not asked, and its step fails."""
    unread = {"point": "tool", "effect": "error", "tool": "read_network", "attempts": [*range(1, 20)]}
    values = {
        "name": "test",
        "scenarios": ["contract_renewal/case_04"],
        "architectures": [*PATTERNS, "kept"],
        "models": ["m"],
        "plans": ["unread"],
        "repetitions": 1,
        "seed": 7,
        "model": {"m": {"kind": "simulated"}},
        "plan": {"unread": {"faults": [unread]}},
        "architecture": {"kept": {"base": "state_machine", "remedies": True}},
    }
    for result in run_all(build_matrix(Config.model_validate(values), ROOTS[:1], "code")):
        assert (result.record.outcome, result.record.reason) == ("wrong", ""), result.record.architecture
        called = {event.tool for event in result.record.events if isinstance(event, ToolCalled)}
        assert "draft_offer" in called and "score_churn" not in called
