"""The verification boundary: extract the JSON of a reply, validate it as an output, run its checks, and say why it is rejected.

**One rule for all architectures** finds the JSON in a reply: it is the first JSON object that can be read after the draft of a
reasoning model (`bench.run.trial.drafts`). Text around it, also code fences, is ignored. An opening brace that begins no JSON
object (a placeholder in prose) is skipped. A malformed object is skipped as a whole: nothing inside it replaces it. An object
in which the reply breaks off is `cut_off`: nothing after it, and nothing inside it, replaces it. Line breaks inside strings are
accepted. `NaN`, `Infinity` and half a surrogate pair are no JSON.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import ValidationError

from bench.common.errors import one_line
from bench.common.values import dataclass
from bench.common.wording import first_violations
from bench.record.events import ViolationKind
from bench.run.trial.decoding import MAX_PARTIAL_CHARS, Extracted, Malformed, Objects, end_of, is_cut_off, rest_of
from bench.run.trial.drafts import CACHED_REPLIES, LONG_REPLY_CHARS, Draft, draft_of
from bench.run.trial.largeness import too_large
from bench.scenario import LONGEST_NOTE, Check, Context, Json, Output, Subtask

Reason = Literal["empty", "refusal", "not_json", "cut_off", "code_blocks", "schema", "check", "insufficient", "found_wrong"]
KIND_OF: Mapping[str, ViolationKind] = {
    **dict.fromkeys(("empty", "refusal", "not_json", "code_blocks", "schema"), "form"),
    **dict.fromkeys(("check", "found_wrong"), "content"),
    "cut_off": "cut_off",
    "insufficient": "insufficient",
}
CLOSED_LIST_ERRORS = frozenset({"literal_error", "enum", "union_tag_invalid"})
"""Pydantic's error types for a word outside a closed list."""


@dataclass(frozen=True)
class Rejected:
    """The rejection of a subtask's output. `detail` is one line that a repair prompt can show to the model. `errors` holds
    pydantic's types of the schema violations. With `reads_as_success`, a repair prompt says that all went well."""

    subtask: str
    reason: Reason
    detail: str
    reply: str = ""
    errors: tuple[str, ...] = ()
    reads_as_success: bool = False

    @property
    def kind(self) -> ViolationKind:
        """What the output violates."""
        if "missing" in self.errors:
            return "missing_field"
        return "vocabulary" if self.errors and CLOSED_LIST_ERRORS.issuperset(self.errors) else KIND_OF[self.reason]


@dataclass(frozen=True)
class Unreadable:
    """The reason why no JSON object could be read in a reply, or why its code could not be assigned to fields. `is_prose` says
    that no object began, so that the reply can be meant as prose."""

    reason: Literal["empty", "refusal", "not_json", "cut_off", "code_blocks"]
    detail: str
    is_prose: bool = False


Verdict = Output | Rejected
AskCheck = Callable[[Subtask, Check, Any, Context], str | None]
"""Asks a check about a subtask's output. Returns its objection, or None."""


def ask_directly(_: Subtask, check: Check, output: Any, context: Context) -> str | None:
    """Run the check here and return its objection, or None."""
    return check(output, context)


_object_with_key = re.compile(r"""\{\s*(?:"[^"\n]*"|'[^'\n]*')\s*:""")
_object_start = re.compile(r"""\{\s*["'}]""")
MAX_OBJECTS_TRIED = 1000
"""The number of opening braces in one reply at which reading an object is tried."""
_refusal = re.compile(r"^\W*+(i['’]?m sorry|i am sorry|sorry|i can(?:no|['’])t|i am unable|i['’]m unable)\b", re.IGNORECASE)


def extract(
    text: str, finish: str = "stop", code: tuple[tuple[int, int], ...] | None = None, draft: Draft | None = None
) -> Extracted | Unreadable:
    """Return the first JSON object after a reply's draft, or why there is none (the rule is above, in this module's docstring).
    The time is linear in the text, and no text raises an exception.

    code   the (start, end) of each code block in the reply, if the answer has code outside of its JSON. No object is searched
           in these blocks, nor after a malformed object, since only code follows there
    draft  the reply's draft, in which no object is searched; by default the draft that `draft_of` finds
    """
    if finish == "content_filter":
        return Unreadable("refusal", "the provider refused to answer")
    find = _cached_extract if len(text) > LONG_REPLY_CHARS else _extract
    return find(text, code, draft or draft_of(text))


def _extract(text: str, code: tuple[tuple[int, int], ...] | None, draft: Draft) -> Extracted | Unreadable:
    """Return the first JSON object in a reply after its draft, or why there is none. Objects within the code blocks `code` are
    skipped."""
    if draft.is_open:
        return Unreadable("cut_off", "the draft before the answer is not closed: the reply breaks off inside it")
    answer = text[draft.end :] if draft.end else text
    if not answer.strip():
        return Unreadable("empty", "nothing follows the draft" if draft.end else "the reply is empty")
    malformed, objects = "", Objects(text)
    last = end_of(text)
    start = _next_begin(text, draft.end, code, last)
    for _ in range(MAX_OBJECTS_TRIED):
        if start < 0:
            break
        result = objects.read(start)
        if isinstance(result, Extracted):
            return result
        if is_cut_off(text, result, last):
            return Unreadable("cut_off", "the JSON object is not closed: the reply breaks off inside it")
        if has_key := _object_with_key.match(text, start):
            malformed = malformed or _reason_with_place(text, result)
        next_start = objects.end(start) if has_key else start + 1
        start = -1 if has_key and code is not None else _next_begin(text, next_start, code, last)
    else:
        return Unreadable("not_json", f"the reply begins {MAX_OBJECTS_TRIED:,} objects that are no JSON")
    if malformed:
        return Unreadable("not_json", f"the JSON object is malformed: {malformed}")
    if _refusal.match(answer):
        return Unreadable("refusal", "the reply is a refusal")
    return Unreadable("not_json", "the reply holds no JSON object", is_prose=True)


_cached_extract = lru_cache(maxsize=CACHED_REPLIES)(_extract)


def _next_begin(text: str, start: int, code: tuple[tuple[int, int], ...] | None, last: int) -> int:
    """Return the index at which the next object can begin, whole or broken; -1 if no object begins. The decoder is not used for
    this, since it counts the lines before each error: a text of only braces would take quadratic time."""
    brace = _next_brace(text, start, code)
    while brace >= 0 and not _object_start.match(text, brace) and len(rest_of(text, brace + 1, last)) > MAX_PARTIAL_CHARS:
        brace = _next_brace(text, brace + 1, code)
    return brace


def _next_brace(text: str, start: int, code: tuple[tuple[int, int], ...] | None) -> int:
    """Return the index of the next opening brace outside of code blocks; -1 if there is none."""
    brace = text.find("{", start)
    while code and brace >= 0:
        block = bisect_right(code, (brace, len(text))) - 1
        if block < 0 or brace >= code[block][1]:
            break
        brace = text.find("{", code[block][1])
    return brace


def _reason_with_place(text: str, malformed: Malformed) -> str:
    """Return why an object could not be read, with its line and column if they are known."""
    if malformed.at is None:
        return malformed.why
    line, line_start = text.count("\n", 0, malformed.at) + 1, text.rfind("\n", 0, malformed.at)
    return f"{malformed.why} at line {line}, column {malformed.at - line_start}"


def judge(
    subtasks: Sequence[Subtask],
    values: Mapping[str, Json | Unreadable],
    documents: Mapping[str, str],
    earlier: Mapping[str, Output],
    without_findings_of: Container[str] = (),
    ask: AskCheck = ask_directly,
) -> dict[str, Verdict]:
    """Return the verdict on each subtask's value: the output if the value is accepted, else the rejection.

    values                the proposed values by subtask; a subtask can be missing
    earlier               the valid outputs of other subtasks that these subtasks read
    without_findings_of   validating subtasks whose findings are ignored, because their inputs differ from what is judged here
    ask                   asks the checks
    A validating subtask's finding rejects the output that it finds wrong, if that output is judged here.
    """
    verdicts: dict[str, Verdict] = {}
    outputs = dict(earlier)
    for subtask in subtasks:
        verdict = validate(subtask, values[subtask.name]) if subtask.name in values else _missing_part(subtask)
        if not isinstance(verdict, Rejected):
            outputs[subtask.name] = verdict
            verdict = check(subtask, verdict, documents, outputs, ask) or verdict
        verdicts[subtask.name] = verdict
    for subtask in subtasks:
        verdict = verdicts[subtask.name]
        is_ignored = subtask.name in without_findings_of
        found_wrong = None if isinstance(verdict, Rejected) or is_ignored else finding(subtask, verdict)
        if found_wrong and isinstance(verdicts.get(found_wrong.subtask), Output):
            verdicts[found_wrong.subtask] = found_wrong
    return verdicts


def validate(subtask: Subtask, value: Json | Unreadable) -> Verdict:
    """Validate a value against the subtask's schema. A value on which a validator of the pack raises is rejected."""
    if isinstance(value, Unreadable):
        return Rejected(subtask.name, value.reason, value.detail)
    if why := too_large(value):
        return Rejected(subtask.name, "schema", why)
    try:
        return subtask.output.model_validate(value)
    except ValidationError as error:
        return _schema_rejection(subtask, error)
    except Exception as error:
        return Rejected(subtask.name, "schema", _one_line(f"the output: {type(error).__name__}: {error}"))


def _missing_part(subtask: Subtask) -> Rejected:
    """Return the rejection of a subtask that the reply does not mention."""
    return Rejected(subtask.name, "schema", f"{subtask.name}: Field required", errors=("missing",))


def _schema_rejection(subtask: Subtask, error: ValidationError) -> Rejected:
    """Return the rejection of an output, with its first few schema violations and their places."""
    first = first_violations(error, 3)
    detail = "; ".join(f"{'.'.join(map(str, error['loc'])) or 'the output'}: {error['msg']}" for error in first)
    unnamed = error.error_count() - len(first)
    more = f"; and {unnamed} more" if unnamed > 0 else ""
    return Rejected(subtask.name, "schema", _one_line(detail + more), errors=tuple(error["type"] for error in first))


def check(
    subtask: Subtask, output: Output, documents: Mapping[str, str], outputs: Mapping[str, Output], ask: AskCheck = ask_directly
) -> Rejected | None:
    """Return the rejection by the first of the subtask's checks that objects; None if no check does. A signal of the subtask
    that raises an exception on the output also rejects it.

    If an input of the subtask has no valid output, no check is run: the output would have to be made again anyway.
    """
    context = Context(documents, {name: outputs[name] for name in subtask.reads if name in outputs})
    missing = [name for name in subtask.reads if not (name in documents or name in outputs)]
    checks = () if missing else subtask.checks
    signals = filter(None, (subtask.sufficient, subtask.finds))
    for rule in (*checks, *map(_as_check, signals)):
        objection = ask(subtask, rule, output, context)
        if objection is not None:
            return Rejected(subtask.name, "check", _one_line(objection))
    return None


@lru_cache(maxsize=256)
def _as_check(signal: Callable[[Any], object]) -> Check:
    """Return a check that rejects only outputs on which the signal raises."""

    def ask(output: Any, _: Context) -> None:
        signal(output)

    ask.__name__ = getattr(signal, "__name__", ask.__name__)
    return ask


def insufficient(subtask: Subtask, output: Output) -> Rejected | None:
    """Return the rejection of a valid output that is too weak to build on; None if it is sufficient. This is the second signal
    of runtime branching."""
    why = subtask.sufficient(output) if subtask.sufficient else None
    return Rejected(subtask.name, "insufficient", _one_line(why)) if why is not None else None


def finding(subtask: Subtask, output: Output) -> Rejected | None:
    """Return the rejection of an earlier subtask's output that this validating output finds wrong; None if it finds nothing."""
    complaint = subtask.finds(output) if subtask.finds else None
    return Rejected(complaint.subtask, "found_wrong", _one_line(complaint.reason)) if complaint else None


def _one_line(text: str) -> str:
    return one_line(text, LONGEST_NOTE)
