"""What a scenario is: a task that models can see, and a grader that alone knows the truth.

A pack is a folder `scenarios/<pack>/` whose `scenario.py` defines `scenario(folder) -> Scenario`, or for many tasks of one
kind `instances(folder)` and `scenario(folder, instance)`. See `bench.packs` for how it is found, loaded and refused. Example of
the smallest subtask:

    Subtask(name="triage", instructions="List the error lines of `app.log`.", reads=("app.log",), output=Triage)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from bench.bounds import Lookup
from bench.digests import digest_of
from bench.errors import one_line

Json = Any
"""A value that came out of `json.loads`: nothing is known of it before it is verified."""

LARGEST_OUTPUT, MOST_LINES = 2**16, 2**13
"""Characters, and lines, of all texts in one output: with more it is rejected unread."""
LONGEST_NOTE = 2000
"""Characters of what a check or a grader says, which may repeat what hostile code returned: of more, the beginning is kept."""
MOST_PARTS = 1_000
"""Partial scores of a grade."""


class Output(BaseModel):
    """The base of every subtask's output type. Unknown fields are ignored, and strict types are not asked of a model."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@lru_cache(maxsize=1024)
def schema_of(output: type[BaseModel]) -> Mapping[str, Any]:
    """Return the JSON schema of an output. It is made once, and nobody changes it.

    Args:
        output: The output type.

    Returns:
        The schema, as pydantic writes it.
    """
    return output.model_json_schema()


CODE = "x-code"
"""The key under which an output's JSON schema says that a text is code, and in which language."""


@dataclass(frozen=True)
class Code:
    """Marks a text of an output as code: `Annotated[str, Code("python")]`, in a field or in the values of a dict.

    In the answer format `fenced` it stands in a code block behind the JSON; in all others it changes nothing.

    language   what the code block is marked with
    """

    language: str = ""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), CODE: self.language}


class NotRead(KeyError):
    """A pack's code asked for a document or an output that it does not get. Its text is one line."""

    def __str__(self) -> str:
        return str(self.args[0])


class Inputs(dict[str, Any]):
    """Documents by name, as a pack's code gets them. A name that is not among them is refused in words.

    lacks   what is said before the name that is missing
    has     what is said before the names that are there
    """

    lacks, has = "there is no document", "the documents are"

    def __missing__(self, name: object) -> Any:
        raise NotRead(f"{self.lacks} {name!r}; {self.has}: {', '.join(self) or 'none'}")


class ReadOutputs(Inputs):
    """The outputs that a subtask reads."""

    lacks, has = "the subtask does not read the output", "add it to its reads, which now have"


class AnswerOutputs(Inputs):
    """The outputs that are graded."""

    lacks, has = "the answer has no output", "it has"


Document = str | BaseModel | Mapping[str, Any]
"""The state of what a task is about, given with a call: a text, or what a tool returned."""


def as_document(value: Document) -> str:
    """Return the same text for the same state, whoever asks.

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
    """What a check may look at beside the output it judges.

    documents   all documents, texts by name
    outputs     the outputs that the subtask reads, by its name
    """

    documents: Mapping[str, str]
    outputs: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", Inputs(self.documents))
        object.__setattr__(self, "outputs", ReadOutputs(self.outputs))


@dataclass(frozen=True)
class Finding:
    """A validating subtask's word that an earlier subtask's output is wrong.

    subtask   the name of the earlier subtask
    reason    why its output is wrong, in one line
    """

    subtask: str
    reason: str


Check = Callable[[Any, Context], str | None]
"""A deterministic check beyond the schema: the reason to reject the output, in one line, or None."""


@dataclass(frozen=True)
class Subtask:
    """One narrowly scoped judgment.

    name           its name, unique in the task: a key of random draws
    instructions   what the model is told to do, as Markdown
    reads          names of documents and of earlier subtasks; nothing else is put into its prompt
    output         the type of its output
    checks         run after the schema, and only where every subtask it reads has a valid output
    sufficient     why a valid output is too weak (empty, unsure), or None; asked by architectures that branch at runtime
    skip           given the outputs so far, the output to commit without asking a model, or None where it is needed
    finds          given its own output, the earlier subtask that it found wrong, or None
    checkpoint     static decomposition verifies here what it handed on unverified
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


@dataclass(frozen=True)
class Task:
    """All that an architecture, and through it a model, may see of a scenario.

    name        the pack's name
    role        opens every prompt, as the system message
    documents   texts by name
    subtasks    stand in an order in which each reads earlier ones
    answer      names the outputs that are graded; () stands for all. An output that is not among them is scratch
    """

    name: str
    role: str
    documents: Mapping[str, str]
    subtasks: tuple[Subtask, ...]
    answer: tuple[str, ...] = ()

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """Return the digests of the documents, by name."""
        return {name: digest_of(text) for name, text in self.documents.items()}

    @cached_property
    def answer_names(self) -> tuple[str, ...]:
        """Return the subtasks whose outputs are the answer, in the order of the subtasks."""
        names = tuple(subtask.name for subtask in self.subtasks)
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
        """Return the subtasks cut after each checkpoint; the last subtask always is one."""
        stages: list[tuple[Subtask, ...]] = []
        stage: list[Subtask] = []
        for subtask in self.subtasks:
            stage.append(subtask)
            if subtask.checkpoint or subtask is self.subtasks[-1]:
                stages.append(tuple(stage))
                stage = []
        return tuple(stages)


@dataclass(frozen=True)
class Grade:
    """What the grader says of an answer. A correct answer may score less than 1.

    correct   whether it solves the task
    score     in [0, 1]
    parts     the partial scores it is made of, each in [0, 1], at most MOST_PARTS
    note      one line that says why

    Raises:
        ValueError: A score is not in [0, 1], or there are too many parts.
    """

    correct: bool
    score: float
    parts: Annotated[Lookup[str, float], Field(max_length=MOST_PARTS)]
    note: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.correct, bool):
            raise ValueError(f"a grade's `correct` is {self.correct!r}; it must be True or False")
        if len(self.parts) > MOST_PARTS:
            raise ValueError(f"a grade has {len(self.parts):,} parts; it may have {MOST_PARTS:,}")
        for name, score in {"score": self.score, **self.parts}.items():
            if not isinstance(score, int | float) or not 0 <= score <= 1:
                raise ValueError(f"a grade's `{name}` is {score!r}; it must be a number from 0 to 1")


Answer = Mapping[str, Any]
"""The graded answer, of one type for all architectures: a valid output for each of `Task.answer_names`, keyed by its name."""


Grader = Callable[[Any, Any], Grade]
"""(answer, truth) -> its grade: the only code that reads the truth. The truth is the Path of the pack's truth folder, unless
the pack gives a JSON value in its place. In a pack with a world the answer is the `FinalWorld`, never what the agent says."""

Baseline = Callable[[Mapping[str, str]], Mapping[str, Json]]
"""Documents -> subtask -> JSON: an answer made by keyword rules alone, without a model; empty where they find none."""


@dataclass(frozen=True)
class WrongAnswer:
    """A plausible wrong answer: the reference with some outputs exchanged, which the grader must refuse.

    name      the name of its file
    why       what is wrong with it, in one line
    outputs   subtask -> the JSON of the output in the reference's place
    """

    name: str
    why: str
    outputs: Mapping[str, Json]


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    tool        the tool's name
    arguments   its arguments, as JSON by name
    """

    tool: str
    arguments: Mapping[str, Any]


class TaskEnvironment(Protocol):
    """What a pack's task stands in beside its documents, such as a world that tools act on.

    A wing brings a type of it, and registers what is done with it (`bench.packs.environments`).

    part    the name of the wing's entry
    given   names of documents that are given with each call
    right   (subtask, documents) -> the right output in that state, as JSON; None where the pack does not say
    """

    part: ClassVar[str]

    @property
    def given(self) -> tuple[str, ...]:
        """Return the names of documents that are given with each call."""

    @property
    def right(self) -> Callable[[str, Mapping[str, str]], Json] | None:
        """Return what answers for a simulated model; None where the pack does not say."""


@dataclass(frozen=True)
class Scenario:
    """One instance of a pack, loaded in one variant.

    name        the pack's, followed by `:variant` where that is not its first; all instances share it
    instance    which of the pack's instances; "" where it is the sole one
    truth       what only the grader reads: the Path of a folder, or a JSON value
    reference   subtask -> the JSON of an output that solves it
    wrong       answers that a careless grader would let pass
    secrets     texts that would give the answer away and so may stand in no document and no instruction
    asked       digest of all that is asked: texts, schemas, and the pack's code but for what only grades
    graded_by   digest of what grades: the truth, and the code that only the grader and the baseline reach
    made_by     the function that made documents, reference, wrong answers and truth, where code did: what it makes is in the
                digests, so that an edit of it that makes the same voids no run. It returns values, and no functions
    environment   what its task stands in, an `Environment` such as a world that tools act on; None where that is nothing
    graded      whether there is an answer to grade; else calls are only counted
    checks_run_code, grader_runs_code   whether these run, in the sandbox, code that an answer holds
    checks_use_sandbox   whether a check may wait for the sandbox, to run code or to parse it
    """

    name: str
    variant: str
    task: Task
    grade: Grader
    truth: Any
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    baseline: Baseline
    secrets: tuple[str, ...] = ()
    instance: str = ""
    asked: str = ""
    graded_by: str = ""
    made_by: Callable[..., Any] | None = None
    graded: bool = True
    checks_use_sandbox: bool = False
    checks_run_code: bool = False
    grader_runs_code: bool = False
    environment: Any = None

    @property
    def key(self) -> str:
        """Return what tells this instance from all others of a run."""
        return scenario_key(self.name, self.instance)

    @cached_property
    def reference_digest(self) -> str:
        """Return the digest of the reference and the wrong outputs.

        A simulated model answers with them, and `wrong_value` draws from them.
        """
        text = json.dumps([self.reference, [wrong.outputs for wrong in self.wrong]])
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def grade_answer(self, answer: Answer) -> Grade:
        """Grade an answer. The grader gets the outputs named by `Task.answer_names` and no others.

        Args:
            answer: Valid outputs by subtask.

        Returns:
            The grade.

        Raises:
            KeyError: An output is missing.
            TypeError: The grader returned no Grade. Whatever the grader raises is raised as well.
        """
        return self._graded(self._answer({name: answer[name] for name in self.task.answer_names}))

    def grade_world(self, world: Any) -> Grade:
        """Grade what became of the task's environment.

        Args:
            world: What the pack's grader is given of it, a `FinalWorld`.

        Returns:
            The grade.

        Raises:
            TypeError: The grader returned no Grade. Whatever the grader raises is raised as well.
        """
        return self._graded(world)

    def _graded(self, answer: Any) -> Grade:
        grade = self.grade(answer, self.truth)
        if not isinstance(grade, Grade):
            raise TypeError(f"the grader returned {type(grade).__name__}; it must return a bench.scenario.Grade")
        return replace(grade, note=one_line(grade.note, LONGEST_NOTE))

    def grade_outputs(self, outputs: Mapping[str, Json]) -> Grade:
        """Grade an answer that is given as JSON.

        Args:
            outputs: JSON by subtask.

        Returns:
            The grade.

        Raises:
            ValidationError: An output does not fit its schema.
            KeyError: An output is missing.
        """
        return self.grade_answer(self.answer_of(outputs))

    def answer_of(self, outputs: Mapping[str, Json]) -> Answer:
        """Return the answer that JSON by subtask means.

        Args:
            outputs: JSON by subtask.

        Returns:
            Valid outputs by subtask.

        Raises:
            ValidationError: An output does not fit its schema.
            KeyError: An output is missing.
        """
        names = self.task.answer_names
        return self._answer({name: self.task.subtask(name).output.model_validate(outputs[name]) for name in names})

    def _answer(self, outputs: Mapping[str, Any]) -> Answer:
        return AnswerOutputs(outputs)

    @cached_property
    def wrong_outputs(self) -> Mapping[str, tuple[Json, ...]]:
        """Return plausible wrong outputs by subtask, from the wrong answers."""
        names = {name for wrong in self.wrong for name in wrong.outputs}
        return {name: tuple(wrong.outputs[name] for wrong in self.wrong if name in wrong.outputs) for name in names}


def scenario_key(name: str, instance: str) -> str:
    """Return the key of an instance.

    Args:
        name: The pack's name, with its variant.
        instance: The instance's name; "" for a sole one.

    Returns:
        `pack`, or `pack/instance` where the pack has several.
    """
    return f"{name}/{instance}" if instance else name
