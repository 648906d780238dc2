"""A model's table in a config: simulated, behind an endpoint, recorded, or routed to others by difficulty."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bench.answers.formats import AnswerFormat
from bench.experiment.entry import Entry
from bench.models.openai_settings import OpenAISettings
from bench.models.routed import RoutedSettings
from bench.models.simulated import SimulatedSettings
from bench.numbers import Price

DraftTag = Annotated[str, Field(min_length=1, max_length=100)]


class Asked(Entry):
    """What every model's entry may say."""

    answer_format: AnswerFormat | None = None
    """In which form this model is asked to answer, in place of the experiment's: so one config can hold a model in several."""
    draft_tags: tuple[tuple[DraftTag, DraftTag], ...] = Field((), max_length=8)
    """Pairs of tags in which this model thinks before it answers, beside `<think>` and `</think>`:
    `[["<reasoning>", "</reasoning>"]]`. What stands behind the last closing tag is its answer."""


class SimulatedEntry(SimulatedSettings, Asked):
    kind: Literal["simulated"]


class OpenAIEntry(OpenAISettings, Asked):
    kind: Literal["openai"]


class RecordedEntry(Asked):
    """A model of a recorded run: each request is answered from that run's log. `--model recorded:RUN` needs no such table."""

    kind: Literal["recorded"]
    run: Path
    """The run's folder."""
    model: str | None = None
    """The model's name in that run; by default its name here."""
    price_in: Price | None = None
    """Dollars per million tokens read, in place of the recorded price."""
    price_out: Price | None = None
    """Dollars per million tokens written, in place of the recorded price."""
    concurrency: int | None = Field(None, ge=1)
    """How many calls at a time are taken here, in place of as many as in that run. Seconds are then as if each of so many
    calls took as long as it took there, and the model's label says so."""


class RoutedEntry(RoutedSettings, Asked):
    kind: Literal["routed"]


ModelEntry = Annotated[SimulatedEntry | OpenAIEntry | RecordedEntry | RoutedEntry, Field(discriminator="kind")]
