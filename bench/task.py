"""What models can see of a scenario: the task, its subtasks, and the types of their outputs.

The smallest subtask:

    Subtask(name="triage", instructions="List the error lines of `app.log`.", reads=("app.log",), output=Triage)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from bench.common.digests import digest_of

Json = Any
"""A value from `json.loads`. Its structure is unknown before it is verified."""

LARGEST_OUTPUT, MAX_LINES = 2**16, 2**13
"""The most characters, and lines, of all texts in one output. A larger output is rejected unread."""


class Output(BaseModel):
    """The base of every subtask's output type. Unknown fields are ignored, and models need not match types strictly."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@lru_cache(maxsize=1024)
def schema_of(output: type[BaseModel]) -> Mapping[str, Any]:
    """Return the JSON schema of an output type. The result is cached, so do not change it.

    Args:
        output: The output type.

    Returns:
        The schema, as pydantic writes it.
    """
    return output.model_json_schema()


CODE = "x-code"
"""The key in an output's JSON schema that marks a text as code and says its language."""


@dataclass(frozen=True)
class Code:
    """Marks a text of an output as code: `Annotated[str, Code("python")]`, in a field or in the values of a dict.

    In the answer format `fenced` the text is in a code block after the JSON. In all other formats nothing changes.

    language   the code block's language
    """

    language: str = ""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), CODE: self.language}


class NotRead(KeyError):
    """A pack's code asked for a document or an output that it may not read. The text is one line."""

    def __str__(self) -> str:
        return str(self.args[0])


class Inputs(dict[str, Any]):
    """Documents by name, as a pack's code gets them. A missing name raises NotRead.

    lacks   the words before the missing name
    has     the words before the existing names
    """

    lacks, has = "there is no document", "the documents are"

    def __missing__(self, name: object) -> Any:
        raise NotRead(f"{self.lacks} {name!r}; {self.has}: {', '.join(self) or 'none'}")


class ReadOutputs(Inputs):
    """The outputs that a subtask reads, by subtask. A missing subtask raises NotRead."""

    lacks, has = "the subtask does not read the output", "add it to its reads, which now have"


Document = str | BaseModel | Mapping[str, Any]
"""The state that a task is about, given with a call: a text, or what a tool returned."""


def as_document(value: Document) -> str:
    """Return a state as text, always the same for the same state.

    Args:
        value: A text, or what a tool returned.

    Returns:
        The text itself, or JSON with an indent of 1.
    """
    if isinstance(value, str):
        return value
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, indent=1)


@dataclass(frozen=True)
class Context:
    """What a check may read besides the output that it judges.

    documents   all documents, texts by name
    outputs     the outputs that the subtask reads, by subtask
    """

    documents: Mapping[str, str]
    outputs: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", Inputs(self.documents))
        object.__setattr__(self, "outputs", ReadOutputs(self.outputs))


@dataclass(frozen=True)
class Finding:
    """A validating subtask's finding that an earlier subtask's output is wrong.

    subtask   the name of the earlier subtask
    reason    why its output is wrong, in one line
    """

    subtask: str
    reason: str


Check = Callable[[Any, Context], str | None]
"""A deterministic check beyond the schema. It returns the reason to reject the output, in one line, or None."""


@dataclass(frozen=True)
class Subtask:
    """One narrow judgment.

    name           its name, unique in the task: a key of random draws
    instructions   what the model is told to do, as Markdown
    reads          names of documents and earlier subtasks; nothing else is put into its prompt
    output         the type of its output
    checks         run after the schema, and only if every subtask that it reads has a valid output
    sufficient     returns why a valid output is too weak (empty, unsure), or None; asked by architectures that branch at
                   runtime
    skip           given the outputs so far, returns the output to commit without a model, or None if the model is needed
    finds          given its output, returns a finding against an earlier subtask, or None
    checkpoint     static decomposition verifies here what it passed on unverified
    """

    name: str
    instructions: str
    reads: tuple[str, ...]
    output: type[Output]
    checks: tuple[Check, ...] = ()
    sufficient: Callable[[Any], str | None] | None = None
    skip: Callable[[Mapping[str, Any]], Output | None] | None = None
    finds: Callable[[Any], Finding | None] | None = None
    checkpoint: bool = False


def names_of(subtasks: Sequence[Subtask]) -> tuple[str, ...]:
    """Return the names of subtasks.

    Args:
        subtasks: The subtasks.

    Returns:
        Their names, in the same order.
    """
    return tuple([subtask.name for subtask in subtasks])


@dataclass(frozen=True)
class Task:
    """All that an architecture, and through it a model, may see of a scenario.

    name        the pack's name
    role        the system message that opens every prompt
    documents   texts by name
    subtasks    in an order in which each reads only earlier ones
    answer      the names of the graded outputs; () means all. Other outputs are scratch
    """

    name: str
    role: str
    documents: Mapping[str, str]
    subtasks: tuple[Subtask, ...]
    answer: tuple[str, ...] = ()

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """The digests of the documents, by name."""
        return {name: digest_of(text) for name, text in self.documents.items()}

    @cached_property
    def answer_names(self) -> tuple[str, ...]:
        """The subtasks whose outputs are the answer, in the order of the subtasks."""
        names = names_of(self.subtasks)
        return tuple(name for name in names if name in self.answer) if self.answer else names

    def subtask(self, name: str) -> Subtask:
        """Return a subtask by its name.

        Args:
            name: The name of a subtask of this task.

        Returns:
            The subtask.

        Raises:
            StopIteration: There is none of this name.
        """
        return next(subtask for subtask in self.subtasks if subtask.name == name)

    @property
    def stages(self) -> tuple[tuple[Subtask, ...], ...]:
        """The subtasks, cut after each checkpoint. The last subtask always is a checkpoint."""
        stages: list[tuple[Subtask, ...]] = []
        stage: list[Subtask] = []
        for subtask in self.subtasks:
            stage.append(subtask)
            if subtask.checkpoint or subtask is self.subtasks[-1]:
                stages.append(tuple(stage))
                stage = []
        return tuple(stages)
