"""Restore a trial's answer from the texts in its run's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from bench.common.errors import ResultsError
from bench.record.events import Answered, Committed
from bench.record.record import TrialRecord
from bench.scenario import Output, Scenario


def answer_of(trial: TrialRecord, scenario: Scenario, texts: Mapping[str, str], folder: Path) -> dict[str, Output] | None:
    """Return the outputs of the trial's answer by subtask; None if an output does not fit its schema. Raises ResultsError if
    the run in `folder` lacks a text of the answer."""
    digests = {(event.subtask, event.version): event.digest for event in trial.events if isinstance(event, Committed)}
    versions = next((event.versions for event in trial.events if isinstance(event, Answered)), ())
    outputs = {}
    for name, version in versions:
        try:
            outputs[name] = scenario.task.subtask(name).output.model_validate(json.loads(texts[digests[name, version]]))
        except KeyError as missing:
            raise ResultsError(f"{folder}: lacks the text {missing} of trial {trial.id}; restore it from a copy") from missing
        except (ValueError, ValidationError, RecursionError):
            return None
    return outputs
