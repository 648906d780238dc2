"""The entry of a kind of model, and the keys that every model's table in a config can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bench.common.bounds import Many
from bench.common.registry import Part
from bench.record.entry import ConfigEntry
from bench.record.formats import AnswerFormat

DraftTag = Annotated[str, Field(min_length=1, max_length=100)]


class BaseModelEntry(ConfigEntry):
    """The keys that every model's table in a config can have."""

    kind: str
    answer_format: AnswerFormat | None = None
    """The form in which this model is asked to answer, instead of the experiment's. With it, one config can hold a model in
    several forms."""
    draft_tags: Many[tuple[DraftTag, DraftTag]] = Field((), max_length=8)
    """Pairs of tags around this model's thoughts before its answer: `[["<musing>", "</musing>"]]`. Its answer is what follows
    the last closing tag. Those of [common models](../concepts.md#finding-the-json) are known."""

    @property
    def passes_on_to(self) -> tuple[str, ...]:
        """Return the names of the models to which this model passes requests on."""
        return ()

    @property
    def replays(self) -> Path | None:
        """Return the folder of the run whose recorded replies the model gives; None if it replays no run."""
        return None

    def misfit(self, _: AnswerFormat) -> str:
        """Return why the model cannot be asked in an answer format.

        Args:
            _: The answer format.

        Returns:
            One line; "" if it can be asked.
        """
        return ""


@dataclass(frozen=True)
class ModelPart(Part):
    """A kind of model. Its name is the `kind` in a model's table.

    settings   the table's type: it has `kind: Literal["NAME"]`
    path       the function that makes the model from its settings and from `bench.run.models.making`
    """

    settings: type[BaseModelEntry]
    path: str

    @property
    def modules(self) -> Sequence[str]:
        """Return the modules that contain the code of the model."""
        return (self.path.partition(":")[0],)

    def __post_init__(self) -> None:
        if not issubclass(self.settings, BaseModelEntry):
            raise TypeError(f"the settings of '{self.name}' are no {__name__}.BaseModelEntry")
