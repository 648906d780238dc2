"""Read the JSON in a reply, in each answer format. The rule is the same for all architectures.

Only the part of a reply after its draft is read (`bench.run.trial.drafts`):

json, schema   the JSON object (`bench.run.trial.verification`)
fenced         the JSON object outside of code blocks, and then each code block after it, which is the value of a field with
               code (`bench.run.answers.fenced`). Blocks before the object are ignored. An answer that is all code needs no
               JSON. A block in which the reply breaks off is `cut_off`. If blocks cannot be assigned to fields, none is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.record.formats import DEFAULT, AnswerFormat
from bench.run.answers import fenced
from bench.run.answers.places import Schema, holds_code, is_all_code
from bench.run.trial.decoding import Extracted
from bench.run.trial.drafts import KNOWN_TAGS, LONG_REPLY_CHARS, Draft, Tags, draft_of
from bench.run.trial.schema import answer_schema
from bench.run.trial.verification import Unreadable, extract
from bench.scenario import Json, Subtask

FENCE, MAX_FENCES = "```", 1000
"""The most fences in an answer with code blocks."""


def read(
    text: str, finish: str, subtasks: Sequence[Subtask], answer_format: AnswerFormat = DEFAULT, tags: Tags = KNOWN_TAGS
) -> Extracted | Unreadable:
    """Return the JSON object in a reply, with its code in the fields that hold code. Never raises.

    Args:
        text: The reply.
        finish: Why the model stopped, as its endpoint says.
        subtasks: The subtasks whose outputs were asked for.
        answer_format: The form in which the outputs were asked for.
        tags: The tags around a draft.

    Returns:
        The JSON object, with the start and end of the text that holds it and, in a fenced answer, its blocks; or why there is
        none.
    """
    if not is_fenced(subtasks, answer_format):
        return extract(text, finish, draft=draft_of(text, tags))
    if text.count(FENCE) > MAX_FENCES:
        return Unreadable("code_blocks", f"the reply has more than {MAX_FENCES:,} lines of backticks")
    draft = draft_of(text, tags, in_blocks=True)
    return _read_fenced(text, finish, answer_schema(subtasks), draft)


def read_ahead(text: str, answer_format: AnswerFormat, tags: Tags) -> None:
    """Read a long reply now, so that the result is cached when it is needed."""
    if len(text) <= LONG_REPLY_CHARS:
        return
    extract(text, draft=draft_of(text, tags))
    if answer_format != "fenced":
        return
    draft = draft_of(text, tags, in_blocks=True)
    if text.count(FENCE) <= MAX_FENCES:
        extract(text, code=fenced.before_json(text, draft.end).code, draft=draft)


def draft_in(text: str, subtasks: Sequence[Subtask], answer_format: AnswerFormat, tags: Tags) -> Draft:
    """Return the draft of a reply to a call for these subtasks."""
    return draft_of(text, tags, is_fenced(subtasks, answer_format))


def is_fenced(subtasks: Sequence[Subtask], answer_format: AnswerFormat) -> bool:
    """Return whether the answer to a call for these subtasks has code in code blocks."""
    return answer_format == "fenced" and holds_code(answer_schema(subtasks))


def _read_fenced(text: str, finish: str, schema: Schema, draft: Draft) -> Extracted | Unreadable:
    """Read a reply whose code is in code blocks."""
    prefix = fenced.before_json(text, draft.end)
    extracted = extract(text, finish, prefix.code, draft)
    if isinstance(extracted, Extracted):
        fence_start, fenced_json_start = prefix.fence or (-1, -1)
        in_fence = fenced_json_start == extracted.start
        start = fence_start if in_fence else extracted.start
        return _with_blocks(text, extracted.value, schema, start, fenced.end_of_json(text, extracted.end, in_fence))
    if not (extracted.is_prose and prefix.code):
        return extracted
    if not is_all_code(schema):
        return Unreadable("not_json", "the reply holds no JSON object before its code")
    return _with_blocks(text, {}, schema, draft.end, draft.end)


def _with_blocks(text: str, value: dict[str, Json], schema: Schema, start: int, json_end: int) -> Extracted | Unreadable:
    """Return the answer that this JSON value and the code blocks after it make together."""
    try:
        text[json_end:].encode()
    except UnicodeEncodeError:
        return Unreadable("not_json", "a code block holds half a surrogate pair")
    blocks = fenced.blocks_of(text, json_end)
    if isinstance(blocks, fenced.UnclosedBlock):
        label = f" '{blocks.label}'" if blocks.label else ""
        return Unreadable("cut_off", f"the code block{label} is not closed: the reply breaks off inside it")
    try:
        whole = fenced.assemble(value, blocks, schema)
    except RecursionError:
        return Unreadable("not_json", "the JSON object is malformed: it is nested too deeply")
    if isinstance(whole, fenced.UnassignedBlocks):
        return Unreadable("code_blocks", whole.why)
    return Extracted(whole, start, blocks[-1].end if blocks else json_end)
