"""Divide a reply into its subtasks' parts: the whole reply for one subtask, else one field of its object for each subtask."""

from __future__ import annotations

from collections.abc import Sequence

from bench.common.values import dataclass
from bench.record.formats import DEFAULT, AnswerFormat
from bench.run.trial.decoding import Extracted
from bench.run.trial.drafts import KNOWN_TAGS, NO_DRAFT, Tags
from bench.run.trial.effects import dump
from bench.run.trial.reading import draft_in, read
from bench.run.trial.verification import Unreadable, extract
from bench.scenario import Json, Subtask


@dataclass(frozen=True)
class ReplyPart:
    """One subtask's part of a reply: its text, and its JSON value or why it has none."""

    text: str
    value: Json | Unreadable


def parts_of(
    text: str, finish: str, subtasks: Sequence[Subtask], answer_format: AnswerFormat = DEFAULT, tags: Tags = KNOWN_TAGS
) -> dict[str, ReplyPart]:
    """Return the parts of a reply by subtask.

    If the reply cannot be read, every part is the whole text after the draft. Else the text of a part is its JSON, in every
    format: the state holds this text, and later subtasks read it.

    Args:
        text: The reply.
        finish: Why the model stopped, as its endpoint says.
        subtasks: The subtasks whose outputs were asked for.
        answer_format: The form in which the outputs were asked for.
        tags: The tags around a draft.

    Returns:
        The parts by the name of the subtask. A subtask is missing if a reply that can be read has no part for it.
    """
    return parts_in(read(text, finish, subtasks, answer_format, tags), text, subtasks, answer_format, tags)


def parts_in(
    extracted: Extracted | Unreadable, text: str, subtasks: Sequence[Subtask], answer_format: AnswerFormat, tags: Tags
) -> dict[str, ReplyPart]:
    """Return the parts of a reply that was already read, with `extracted` as the result."""
    if isinstance(extracted, Unreadable):
        answer = text[draft_in(text, subtasks, answer_format, tags).end :]
        return {subtask.name: ReplyPart(answer, extracted) for subtask in subtasks}
    if len(subtasks) == 1:
        return {subtasks[0].name: ReplyPart(dump(extracted.value), extracted.value)}
    names = [subtask.name for subtask in subtasks if subtask.name in extracted.value]
    return {name: ReplyPart(dump(extracted.value[name]), extracted.value[name]) for name in names}


def reads_as(
    text: str,
    finish: str,
    subtask: Subtask,
    call_subtasks: Sequence[Subtask],
    answer_format: AnswerFormat = DEFAULT,
    tags: Tags = KNOWN_TAGS,
) -> bool:
    """Return whether a reply reads as this subtask's output, good or bad, and not as something else, such as an agent's plan.

    Args:
        text: The reply.
        finish: Why the model stopped, as its endpoint says.
        subtask: The subtask.
        call_subtasks: The subtasks whose outputs were asked for.
        answer_format: The form in which the outputs were asked for.
        tags: The tags around a draft.

    Returns:
        True if the reply's JSON object has a field of the output, or if the reply is neither prose nor readable JSON.
    """
    return extracted_reads_as(read(text, finish, call_subtasks, answer_format, tags), subtask, call_subtasks)


def extracted_reads_as(extracted: Extracted | Unreadable, subtask: Subtask, call_subtasks: Sequence[Subtask]) -> bool:
    """Return whether a reply that was already read, with `extracted` as the result, reads as this subtask's output
    (`reads_as`)."""
    if isinstance(extracted, Unreadable):
        return not extracted.is_prose
    value = extracted.value.get(subtask.name) if len(call_subtasks) > 1 else extracted.value
    return isinstance(value, dict) and not value.keys().isdisjoint(subtask.output.__pydantic_fields__)


def reread(text: str) -> ReplyPart:
    """Read a text of the state again, after a fault may have changed it."""
    extracted = extract(text, draft=NO_DRAFT)
    return ReplyPart(text, extracted if isinstance(extracted, Unreadable) else extracted.value)
