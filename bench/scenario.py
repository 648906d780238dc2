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
    """The base of every subtask's output type. Unknown fields are ignored, strict types are not asked of a model."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@lru_cache(maxsize=1024)
def schema_of(output: type[BaseModel]) -> Mapping[str, Any]:
    """The JSON schema of an output, made once: nobody changes it."""
    return output.model_json_schema()


CODE = "x-code"
"""The key under which an output's JSON schema says that a text is code, and in which language."""


@dataclass(frozen=True)
class Code:
    """Marks a text of an output as code: `Annotated[str, Code("python")]`, in a field or in the values of a dict.

    In the answer format `fenced` it stands in a code block behind the JSON; in all others it changes nothing.
    """

    language: str = ""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), CODE: self.language}


class NotRead(KeyError):
    """A pack's code asked for a document or an output that it does not get. Its text is one line."""

    def __str__(self) -> str:
        return str(self.args[0])


class Inputs(dict[str, Any]):
    """Documents or outputs by name, as a pack's code gets them. A name that is not among them is refused in words.

    lacks   what is said before the name that is missing
    has     what is said before the names that are there
    """

    def __init__(self, values: Mapping[str, Any], lacks: str, has: str):
        super().__init__(values)
        self._lacks, self._has = lacks, has

    def __missing__(self, name: object) -> Any:
        raise NotRead(f"{self._lacks} {name!r}; {self._has}: {', '.join(self) or 'none'}")


def documents_of(documents: Mapping[str, str]) -> Mapping[str, str]:
    """The documents, as a pack's code gets them."""
    return Inputs(documents, "there is no document", "the documents are")


Document = str | BaseModel | Mapping[str, Any]
"""The state of what a task is about, given with a call: a text, or what a tool returned."""


def as_document(value: Document) -> str:
    """Return the same text for the same state, whoever asks."""
    if isinstance(value, str):
        return value
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, indent=1)


@dataclass(frozen=True)
class Context:
    """What a check may look at beside the output it judges: all documents, and the outputs that the subtask reads."""

    documents: Mapping[str, str]
    outputs: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", documents_of(self.documents))
        outputs = Inputs(self.outputs, "the subtask does not read the output", "add it to its reads, which now have")
        object.__setattr__(self, "outputs", outputs)


@dataclass(frozen=True)
class Finding:
    """A validating subtask's word that an earlier subtask's output is wrong."""

    subtask: str
    reason: str


Check = Callable[[Any, Context], str | None]
"""A deterministic check beyond the schema: the reason to reject the output, in one line, or None."""


@dataclass(frozen=True)
class Subtask:
    """One narrowly scoped judgment.

    reads        names of documents and of earlier subtasks; nothing else is put into its prompt
    checks       run after the schema, and only where every subtask it reads has a valid output
    sufficient   why a valid output is too weak (empty, unsure), or None; asked by architectures that branch at runtime
    skip         given the outputs so far, the output to commit without asking a model, or None where it is needed
    finds        given its own output, the earlier subtask that it found wrong, or None
    checkpoint   static decomposition verifies here what it handed on unverified
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

    `role` opens every prompt as the system message. The subtasks stand in an order in which each reads earlier ones.
    `answer` names the outputs that are graded; () stands for all. An output that is not among them is scratch.
    """

    name: str
    role: str
    documents: Mapping[str, str]
    subtasks: tuple[Subtask, ...]
    answer: tuple[str, ...] = ()

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """Of the documents, by name."""
        return {name: digest_of(text) for name, text in self.documents.items()}

    @cached_property
    def answer_names(self) -> tuple[str, ...]:
        """The subtasks whose outputs are the answer, in the order of the subtasks."""
        names = tuple(subtask.name for subtask in self.subtasks)
        return tuple(name for name in names if name in self.answer) if self.answer else names

    def subtask(self, name: str) -> Subtask:
        return next(subtask for subtask in self.subtasks if subtask.name == name)

    @property
    def stages(self) -> tuple[tuple[Subtask, ...], ...]:
        """The subtasks cut after each checkpoint; the last subtask always is one."""
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
    """What the grader says of an answer.

    `score` is in [0, 1]; `parts` holds the partial scores it is made of, each in [0, 1]; `note` is one line that says why.
    Raises ValueError for a score outside [0, 1], and for more than MOST_PARTS parts. A correct answer may score less than 1.
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
    """A plausible wrong answer: the reference with some outputs exchanged, which the grader must refuse."""

    name: str
    why: str
    outputs: Mapping[str, Json]


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

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
    def given(self) -> tuple[str, ...]: ...

    @property
    def right(self) -> Callable[[str, Mapping[str, str]], Json] | None: ...


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
        """What tells this instance from all others of a run."""
        return scenario_key(self.name, self.instance)

    @cached_property
    def reference_digest(self) -> str:
        """Of the reference and the wrong outputs: a simulated model answers with them, and `wrong_value` draws from them."""
        text = json.dumps([self.reference, [wrong.outputs for wrong in self.wrong]])
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def grade_answer(self, answer: Answer) -> Grade:
        """Grade an answer. The grader gets the outputs named by `Task.answer_names` and no others.

        Raises KeyError where one is missing, TypeError where the grader returns no Grade, and whatever the grader raises.
        """
        return self._graded(self._answer({name: answer[name] for name in self.task.answer_names}))

    def grade_world(self, world: Any) -> Grade:
        """Grade what became of its environment. Raises TypeError where the grader returns no Grade, and what that raises."""
        return self._graded(world)

    def _graded(self, answer: Any) -> Grade:
        grade = self.grade(answer, self.truth)
        if not isinstance(grade, Grade):
            raise TypeError(f"the grader returned {type(grade).__name__}; it must return a bench.scenario.Grade")
        return replace(grade, note=one_line(grade.note, LONGEST_NOTE))

    def grade_outputs(self, outputs: Mapping[str, Json]) -> Grade:
        """Grade an answer that is given as JSON by subtask. Raises ValidationError or KeyError where it is no answer."""
        return self.grade_answer(self.answer_of(outputs))

    def answer_of(self, outputs: Mapping[str, Json]) -> Answer:
        """The answer that JSON by subtask means. Raises ValidationError or KeyError where it is none."""
        names = self.task.answer_names
        return self._answer({name: self.task.subtask(name).output.model_validate(outputs[name]) for name in names})

    def _answer(self, outputs: Mapping[str, Any]) -> Answer:
        return Inputs(outputs, "the answer has no output", "it has")

    @cached_property
    def wrong_outputs(self) -> Mapping[str, tuple[Json, ...]]:
        """Plausible wrong outputs by subtask, from the wrong answers."""
        names = {name for wrong in self.wrong for name in wrong.outputs}
        return {name: tuple(wrong.outputs[name] for wrong in self.wrong if name in wrong.outputs) for name in names}


def scenario_key(name: str, instance: str) -> str:
    """`pack`, or `pack/instance` where it has several."""
    return f"{name}/{instance}" if instance else name
