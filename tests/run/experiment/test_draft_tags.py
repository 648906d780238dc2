"""The tags in which a model drafts: said in its table, the same for all architectures, kept with the run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from pydantic import ValidationError
from scripted_server import ScriptedServer, completion
from trials import TINY, matrix_of

from bench.record.reading import read_manifest, read_texts
from bench.record.record import TrialRecord
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.recording import recorded_entries
from bench.run.trial.drafts import KNOWN_TAGS

TAGS = [["<musing>", "</musing>"], ["<|draft|>", "<|answer|>"]]
FIRST = json.dumps({"total": 5, "unit": "pears"})


def drafting(opening: str, closing: str) -> ScriptedServer:
    """A server whose model answers rightly, each time behind a draft in these tags."""

    def answer(body: Any) -> Any:
        asked = re.findall(r"^# (?:Task|Step \d+): (\w+)", body["messages"][-1]["content"], re.MULTILINE)
        outputs = {name: TINY.reference[name] for name in asked}
        value = outputs if len(outputs) > 1 else next(iter(outputs.values()), {})
        return completion(f"{opening}It may be {FIRST}.{closing}{json.dumps(value)}")

    return ScriptedServer(answer)


def entry(server: ScriptedServer, **settings: Any) -> dict[str, Any]:
    return {"kind": "openai", "base_url": server.base_url, "price_in": 1.0, "price_out": 1.0, **settings}


def trials(model: dict[str, Any], folder: Path) -> list[TrialRecord]:
    architectures = ["monolithic", "static", "runtime_structured"]
    return run(config(model, architectures=architectures, plans=["none"], plan={}, repetitions=1), folder)


@pytest.mark.parametrize(("opening", "closing"), [*TAGS, *KNOWN_TAGS[:2]])
def test_every_architecture_reads_the_answer_behind_a_draft_in_the_tags_of_the_config(
    opening: str, closing: str, tmp_path: Path
) -> None:
    with drafting(opening, closing) as server:
        done = trials(entry(server, draft_tags=TAGS), tmp_path / "run")
    assert {trial.outcome for trial in done} == {"solved"}
    assert any(f"{opening}It may be {FIRST}.{closing}" in text for text in read_texts(tmp_path / "run").values())


def test_a_replay_reads_the_drafts_as_its_recording_did(tmp_path: Path) -> None:
    with drafting(*TAGS[0]) as server:
        recorded = trials(entry(server, draft_tags=TAGS), tmp_path / "recorded")
    [asked] = recorded_entries(tmp_path / "recorded").values()
    again = trials(asked, tmp_path / "again")
    assert [trial.outcome for trial in again] == ["solved"] * 3
    assert sum(trial.tokens for trial in again) == sum(trial.tokens for trial in recorded)
    for folder in ("recorded", "again"):
        assert [list(pair) for pair in read_manifest(tmp_path / folder).models["small"].draft_tags] == TAGS


def test_without_the_tags_the_draft_is_the_answer(tmp_path: Path) -> None:
    with drafting(*TAGS[0]) as server:
        done = trials(entry(server), tmp_path / "run")
    assert {trial.outcome for trial in done} == {"gave_up"}


def test_a_routed_model_reads_the_drafts_of_whoever_answers() -> None:
    models = {
        "one": {"kind": "simulated", "draft_tags": TAGS[:1]},
        "other": {"kind": "simulated", "draft_tags": TAGS[1:]},
        "route": {"kind": "routed", "default": "one", "subtasks": {"total": "other"}},
    }
    settings = config({}, models=["route"], model=models)
    assert settings.tags_of("route") == (*KNOWN_TAGS, *map(tuple, TAGS))
    assert settings.tags_of("one") == (*KNOWN_TAGS, tuple(TAGS[0]))


def test_the_tags_are_part_of_a_trials_identity_and_a_manifest_without_them_says_nothing() -> None:
    ids = [matrix_of(model={"draft_tags": tags}).specs[0].id for tags in ([], TAGS[:1], TAGS)]
    assert len(set(ids)) == 3
    assert "draft_tags" not in manifest_of(matrix_of(), "run").models["m"].shown


@pytest.mark.parametrize("tags", [[["", "</r>"]], [["<r>"]], "<r>", [["<r>", "</r>", "x"]], [["<r>", "</r>"]] * 9])
def test_tags_that_are_no_pairs_are_refused(tags: Any) -> None:
    with pytest.raises(ValidationError, match="draft_tags"):
        config({"kind": "simulated", "draft_tags": tags})
