"""The entry of a kind of model, and what every model's table in a config may say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bench.answers.formats import AnswerFormat
from bench.bounds import Many
from bench.experiment.entry import ConfigEntry
from bench.registry import Part

DraftTag = Annotated[str, Field(min_length=1, max_length=100)]


class BaseModelEntry(ConfigEntry):
    """What every model's table in a config may say."""

    kind: str
    answer_format: AnswerFormat | None = None
    """In which form this model is asked to answer, in place of the experiment's: so one config can hold a model in several."""
    draft_tags: Many[tuple[DraftTag, DraftTag]] = Field((), max_length=8)
    """Pairs of tags in which this model thinks before it answers, beside `<think>` and `</think>`:
    `[["<reasoning>", "</reasoning>"]]`. What stands behind the last closing tag is its answer."""

    @property
    def passes_on_to(self) -> tuple[str, ...]:
        """Return the models of the config that it passes requests on to."""
        return ()

    @property
    def replays(self) -> Path | None:
        """Return the run whose recorded replies it gives."""
        return None

    def misfit(self, _: AnswerFormat) -> str:
        """Say why the model cannot be asked in a format as its entry has it.

        Args:
            _: The answer format.

        Returns:
            One line; "" where it can be asked.
        """
        return ""


@dataclass(frozen=True)
class ModelPart(Part):
    """A kind of model: the name stands as `kind` in a model's table.

    settings   the table, read: it says `kind: Literal["NAME"]`
    path       of the function that makes the model of its settings and of what the experiment has (`bench.models.making`)
    """

    settings: type[BaseModelEntry]
    path: str

    @property
    def modules(self) -> Sequence[str]:
        """Return the modules in which its code stands."""
        return (self.path.partition(":")[0],)

    def __post_init__(self) -> None:
        if not issubclass(self.settings, BaseModelEntry):
            raise TypeError(f"the settings of '{self.name}' are no {__name__}.Asked")
