"""The agents of configs/scorecard.toml, each by the packages that it stands on, unmodified."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from own_logs import kept_by
from trials import GRADERS, ROOTS, Fault

from bench.common.errors import ConfigError
from bench.record.world_events import WorldEnded
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots

ROOT = ROOTS[0].parent
CONFIG = ROOT / "configs" / "scorecard.toml"
AT_THE_DRAFT: Fault = {"point": "process", "effect": "unrecorded", "tool": "draft_offer", "attempts": [1]}


@cache
def systems() -> list[str]:
    return list(load_config(CONFIG, {}).architectures)


def lived(system: str, *faults: Fault) -> TrialResult:
    """One trial of it with one customer. Skips the test where what it needs is not installed."""
    if system.startswith("mcp_client_js") and not (ROOT / "configs" / "systems" / "node_modules").is_dir():
        pytest.skip("needs: npm install --prefix configs/systems")
    whole = load_config(
        CONFIG, {"plans": ["none"], "architectures": [system], "scenarios": ["contract_renewal"], "instances": 1}
    )
    values = whole.model_dump(mode="json") | {"plans": ["struck"], "plan": {"struck": {"faults": faults}}}
    try:
        matrix = build_matrix(Config.model_validate(values), ROOTS, "code")
    except ConfigError as error:
        if "is not installed" in str(error) or "there is no program" in str(error):
            pytest.skip(str(error))
        raise
    return run(run_trial(matrix.specs[0], matrix, Slots(), GRADERS))


def harm(result: TrialResult) -> dict[str, int]:
    [world] = [event for event in result.record.events if isinstance(event, WorldEnded)]
    return {kind: count for kind, count in world.damage.items() if count}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def assert_its_log_agrees(result: TrialResult) -> None:
    kept = kept_by(result.record, result.texts)
    assert kept
    assert kept.differences == ()


def test_a_loop_that_keeps_its_conversation_and_gives_keys_survives_a_crash() -> None:
    result = lived("openai_loop_durable", AT_THE_DRAFT)
    assert (result.record.outcome, harm(result)) == ("solved", {})
    assert_its_log_agrees(result)


def test_a_loop_that_keeps_nothing_does_again_all_that_it_had_done() -> None:
    result = lived("openai_loop", AT_THE_DRAFT)
    assert result.record.outcome == "wrong"
    assert harm(result)["doubled"] >= 2
    assert_its_log_agrees(result)


@pytest.mark.slow
@pytest.mark.parametrize("system", systems())
def test_each_system_does_its_work_where_nothing_fails_and_its_log_agrees_when_it_is_killed(system: str) -> None:
    undisturbed, killed = lived(system), lived(system, AT_THE_DRAFT)
    assert undisturbed.record.outcome == "solved", undisturbed.record.reason
    assert killed.record.outcome in ("solved", "wrong"), killed.record.reason
    for result in (undisturbed, killed):
        assert_its_log_agrees(result)


def test_no_system_knows_anything_of_the_bench() -> None:
    for path in [*Path(CONFIG.parent / "systems").glob("*.py"), *Path(CONFIG.parent / "systems").glob("*.mjs")]:
        text = path.read_text(encoding="utf-8")
        assert "import bench" not in text
        assert "from bench" not in text
        assert len(text.splitlines()) <= 90
