"""The entry of an architecture in the registry (`bench.run.architectures.registry`)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bench.common.registry import Part
from bench.record.described import Structure
from bench.record.formats import ANSWER_FORMATS, AnswerFormat

if TYPE_CHECKING:
    from bench.run.trial.workbench import Workbench
    from bench.scenario import Task

Architecture: TypeAlias = "Callable[[Task, Workbench], Coroutine[Any, Any, None]]"
"""Works on a task at a workbench until the state holds an output of every subtask. Raises GaveUp through the workbench."""


@dataclass(frozen=True)
class ArchitecturePart(Part):
    """The entry of an architecture.

    path             the import path of its function, `module:function`, which is imported when it is run
    prepare          the import path of a function that is called before its module is imported
    through          our modules that it uses; the endpoint of architectures that make their own calls is not among them
    acts_in          a `task`, a `world`, or `either`
    makes_own_calls  whether it calls the measuring endpoint; else it asks on the workbench's line
    answer_formats   the formats in which it can run
    parallel         whether its function takes `parallel`: it then asks for all ready subtasks at the same time
    forms            whether its function takes `form`: the forms of a pattern (`bench.record.form`)
    learns           whether its function takes `policy`, learned from earlier trials (`bench.record.policy`)
    is_instrument    whether it only measures: it asks, and does nothing
    is_outside       whether it works in a process that is not ours: its answers can be anybody's code
    structure        how it differs from others; None if that is not said
    limits           lines for readers of a table: what it cannot express, or how it differs from our architectures
    """

    path: str = ""
    prepare: str = field(default="", kw_only=True)
    through: tuple[str, ...] = ()
    acts_in: Literal["task", "world", "either"] = "task"
    makes_own_calls: bool = False
    answer_formats: tuple[AnswerFormat, ...] = ANSWER_FORMATS
    parallel: bool = False
    forms: bool = False
    learns: bool = False
    is_instrument: bool = False
    is_outside: bool = False
    structure: Structure | None = None
    limits: tuple[str, ...] = ()

    @property
    def modules(self) -> Sequence[str]:
        """Return the modules that contain its code."""
        own_modules = [self.path.partition(":")[0]] if self.path else []
        endpoint = ["bench.run.endpoint.server"] if self.makes_own_calls else []
        return (*own_modules, *self.through, *endpoint)

    def __post_init__(self) -> None:
        self.refuse_unknown("acts_in", [self.acts_in], ("task", "world", "either"))
        self.refuse_unknown("answer_formats", self.answer_formats, ANSWER_FORMATS)
