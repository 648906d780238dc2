"""The values from which a model is made, besides its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.record.formats import AnswerFormat
from bench.run.models.bank import Bank
from bench.run.models.base import Model
from bench.run.models.cached import ResponsesBefore
from bench.run.models.erring import Learning
from bench.run.models.recording import Recording
from bench.scenario import Scenario


@dataclass(frozen=True)
class Making:
    """The values that an experiment provides to make a model.

    name             the model's name
    answer_format    the format in which the model is asked to answer
    scenarios        the experiment's scenarios, by their keys
    others           the models to which this model passes requests on
    recording        (run, model, calls at the same time) -> the recording of the model in the run, and its parameters
    answered_before  (runs, parameters, account, name) -> the responses in these runs, to this account, of models with these
                     parameters
    bank             run -> the bank of the run's replies to judgments
    learning         run -> the rates at which judgments in the run were right after a rejection
    """

    name: str
    answer_format: AnswerFormat
    scenarios: Mapping[str, Scenario]
    others: Mapping[str, Model]
    recording: Callable[[Path, str, int | None], tuple[Recording, dict[str, object]]]
    answered_before: Callable[[Sequence[Path], Mapping[str, object], str, str], ResponsesBefore]
    bank: Callable[[str], Bank]
    learning: Callable[[str], Learning]
