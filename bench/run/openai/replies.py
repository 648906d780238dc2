"""Read the body of an OpenAI-compatible endpoint's answer: it becomes a `Reply` or one `CallFailed`. This module knows nothing
of HTTP.

Only the needed fields are read, in every form in which providers write them: a paid completion is not lost to an odd field that
nobody needs. `bench.run.openai.words` says which words of a provider mean an answer and which mean a failure. The tokens of a
completion that cannot be used are counted too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bench.common.errors import (
    BadAnswer,
    CallFailed,
    CutOff,
    NoCompletion,
    NoText,
    RateLimited,
    ServerFailed,
    TooLong,
    UnknownFinish,
    UsedUp,
    whole_text,
)
from bench.common.numbers import Count
from bench.record.extra_fields import extra_text, json_text
from bench.record.tool_calls import ToolCall, call_extra, counted_text_of
from bench.run.models.base import Reply, Usage
from bench.run.openai.documents import UnreadableDocument, document_of
from bench.run.openai.errors import EndpointErrorParts, error_at_the_top, error_beside, error_of
from bench.run.openai.streams import completion_in, is_stream
from bench.run.openai.words import WordMeaning, error_event, finish_event, word_in
from bench.wire.blotting import blot

EXCERPT_CHARS = 120
READ_FIELDS = ("role", "content", "tool_calls", "refusal", "name", "function_call", "audio", "images")
"""Fields of a message that are read here, or that are never sent back to a text model."""
WRAPPERS = ("data", "result", "response")
"""Fields in which a gateway can put the whole completion."""
PARTS = ("text", "output_text", "input_text", "refusal", "reference", "image_url", "tool_use", "tool_call")
THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_text", "thought")
"""Types of a content's parts. The text of a thought is not part of the reply."""
FAILURES: Mapping[WordMeaning, type[CallFailed]] = {
    "rate_limit": RateLimited,
    "passing": ServerFailed,
    "lasting": BadAnswer,
    "used_up": UsedUp,
}
USED_UP = "the account's quota is used up: "
_COUNT = TypeAdapter(Count)
MAX_TEXT_CHARS, MAX_CALLS = 2**20, 1000
"""Limits on the characters of a reply's texts, some 250,000 tokens, and on its tool calls: no model writes more. The beginning
of a longer reply is kept. Fields that are only sent back to the endpoint can have as many characters again."""
KEY_CHARS_AFTER_CUT = 2**12
"""Characters after a cut that are also searched for the key, of which a part can stand before the cut."""


def excerpt(text: str, key: str = "", longest: int = EXCERPT_CHARS) -> str:
    """Return the beginning of a server's text as one line. The key is removed before the text is cut: a cut through the key
    would leave half of it."""
    line = " ".join(whole_text(blot(text, key)).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def reply_of(body: str, key: str = "") -> Reply:
    """Read a chat completion, with the key removed. Raises CallFailed."""
    try:
        document = completion_in(body) if is_stream(body) else document_of(body)
    except UnreadableDocument as unreadable:
        raise _no_document(body, unreadable.why, key) from None
    document = _unwrap(document)
    choice = _choice(document.get("choices"))
    if choice is None:
        return _without_choice(document, body, key)
    clean = _TextCleaner(key)
    message = _text_of_choice(choice, clean)
    usage = _usage_in(document, choice, message.wrote_something)
    # some gateways give the reason only in the second field
    word = next(filter(None, (word_in(choice.get(field)) for field in ("finish_reason", "native_finish_reason"))), "")
    event = finish_event(word) if word else "answer"
    if message.refusal or event == "refusal":
        return Reply(message.refusal or message.text, "content_filter", usage, extra=message.extra)
    if error := error_beside(choice) or error_beside(document):
        return _reply_for_error(error, message, usage, key)
    if not word and "message" not in choice and isinstance(choice.get("delta"), dict):
        raise CutOff(
            f"a piece of a stream without its end: {excerpt(body, key)}", partial=message.partial, counted=_token_counts(usage)
        )
    if not word and message.is_missing:
        raise NoText(f"a completion without a message: {excerpt(body, key)}", counted=_token_counts(usage))
    if event in ("answer", "own", "cut_off"):
        finish = "length" if clean.is_cut else _finish(event, word, message.calls)
        return Reply(message.text, finish, usage, tool_calls=message.calls, extra=message.extra)
    name = excerpt(word, key)
    if event is None:
        raise UnknownFinish(f'finish_reason "{name}" is not known', partial=message.partial, counted=_token_counts(usage))
    raise ServerFailed(f'HTTP 200, and finish_reason "{name}"', partial=message.partial, counted=_token_counts(usage))


class _TextCleaner:
    """Removes the key from a reply's texts and cuts them at MAX_TEXT_CHARS together."""

    def __init__(self, key: str):
        self._key, self._left, self._extra_left, self.is_cut = key, MAX_TEXT_CHARS, MAX_TEXT_CHARS, False

    def __call__(self, text: str) -> str:
        """Return a text without the key, cut to the characters that are left."""
        longest = self._left
        self._left -= min(len(text), longest)
        if len(text) <= longest:
            return self.without_key(text)
        self.is_cut = True
        more = min(len(text) - longest, KEY_CHARS_AFTER_CUT)
        return self.without_key(text[: longest + more])[:-more]

    def without_key(self, text: str) -> str:
        """Return a text without the key."""
        return blot(whole_text(text), self._key)

    def calls(self, calls: Iterator[ToolCall]) -> Iterator[ToolCall]:
        """Yield a reply's tool calls up to MAX_CALLS, and no more after a text that was cut."""
        for number in itertools.count():
            if self.is_cut or (call := next(calls, None)) is None:
                return
            if number == MAX_CALLS:
                self.is_cut = True
                return
            yield call

    def extra(self, extra: str) -> str:
        """Return fields that are only sent back to the endpoint, as JSON; "" if they are too large."""
        if len(extra) > self._extra_left:
            self.is_cut, extra = True, ""
        self._extra_left -= len(extra)
        return extra


def reply_in_error(body: str, key: str = "") -> Reply | None:
    """Return the reply in an answer with an error status: a filter's refusal, or a text of the model that its server could not
    use; None if the answer is a failure."""
    error = error_of(body)
    event = error_event(error.words, error.message) if error else ""
    if event == "refusal":
        return Reply("", "content_filter")
    return Reply(blot(whole_text(error.generation or ""), key)) if error and event == "own" else None


@dataclass(frozen=True)
class _ChoiceText:
    """The text of the model in a choice. `is_missing` says that the choice has no field for a text."""

    text: str = ""
    refusal: str = ""
    calls: tuple[ToolCall, ...] = ()
    extra: str = ""
    is_missing: bool = False

    @property
    def partial(self) -> str:
        """All that the model wrote, as one text."""
        return self.text + counted_text_of(self.calls)

    @property
    def wrote_something(self) -> bool:
        return bool(self.text or self.calls or self.refusal)


def _no_document(body: str, why: str, key: str) -> CallFailed:
    """Return the failure of a body without a readable JSON document. `why` is the reason that `UnreadableDocument` gives."""
    if not body.strip():
        return ServerFailed("an answer without a body")
    if why == "too_many":
        return TooLong("the reply holds more values than any reply has; see what the server sends")
    if why == "broke_off":
        return CutOff(f"the reply breaks off after {len(body)} characters")
    is_page = body.lstrip().startswith("<")
    if '"choices"' in body and not is_page:
        return NoText(f"a completion that cannot be read: {excerpt(body, key)}")
    return NoCompletion(f"{'an HTML page' if is_page else 'no chat completion'}: {excerpt(body, key)}")


def _unwrap(document: dict[str, Any]) -> dict[str, Any]:
    """Return the completion in a document, which a gateway can put into a field."""
    if "choices" in document:
        return document
    inner = (document.get(name) for name in WRAPPERS)
    return next((item for item in inner if isinstance(item, dict) and "choices" in item), document)


def _choice(choices: object) -> dict[str, Any] | None:
    """Return the choice with index 0; the first choice if none has this index; None if there is no choice."""
    items = [choices] if isinstance(choices, dict) else choices
    objects = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return next((item for item in objects if item.get("index", 0) in (0, "0", None)), next(iter(objects), None))


def _without_choice(document: Mapping[str, Any], body: str, key: str) -> Reply:
    """Return the reply of a document without choices, if it holds an error that means a reply (`_reply_for_error`). Else raise
    CallFailed."""
    usage = _usage_in(document, {}, False)
    at_the_top = error_at_the_top(document)
    if error := error_beside(document) or (at_the_top if at_the_top and at_the_top.words else None):
        return _reply_for_error(error, _ChoiceText(), usage, key)
    if usage:
        raise NoText(f"a completion without a choice: {excerpt(body, key)}", counted=_token_counts(usage))
    raise NoCompletion(f"no chat completion: {excerpt(body, key)}")


def _reply_for_error(error: EndpointErrorParts, message: _ChoiceText, usage: Usage | None, key: str) -> Reply:
    """Return the reply that an error in an answer of status 200 means: a refusal, or a text of the model. Raises CallFailed for
    any other error."""
    event = error_event(error.words, error.message, error.status)
    if event == "refusal":
        return Reply(message.text, "content_filter", usage, extra=message.extra)
    if event == "own":
        clean = _TextCleaner(key)
        text = message.text or clean(error.generation or "")
        return Reply(text, "length" if clean.is_cut else "stop", usage, extra=message.extra)
    detail = f"{USED_UP if event == 'used_up' else ''}HTTP 200, and an error in it: {excerpt(error.message, key)}"
    raise FAILURES[event](detail, partial=message.partial, counted=_token_counts(usage))


def _finish(event: WordMeaning, word: str, calls: tuple[ToolCall, ...]) -> str:
    """Return the finish reason as OpenAI writes it: `length`, `tool_calls` (only if the reply has tool calls) or `stop`."""
    if event == "cut_off":
        return "length"
    return "tool_calls" if calls and re.search("tool|function", word, re.IGNORECASE) else "stop"


def _token_counts(usage: Usage | None) -> tuple[int, int] | None:
    """Return the numbers of tokens read and written; None if they are unknown."""
    return (usage.tokens_in, usage.tokens_out) if usage else None


def _text_of_choice(choice: Mapping[str, Any], clean: _TextCleaner) -> _ChoiceText:
    """Return the model's text in a choice, which is in a message, in a piece of a stream, or in a field of the older API."""
    message = next((part for name in ("message", "delta") if isinstance(part := choice.get(name), dict)), None)
    if message is None:
        text = next((part for name in ("text", "message") if isinstance(part := choice.get(name), str)), None)
        return _ChoiceText(clean(text or ""), is_missing=text is None)
    content, refusals = message.get("content"), [message.get("refusal")]
    text = "".join(_texts(content, refusals))
    refusal = next((part for part in refusals if isinstance(part, str) and part), "")
    other_fields = {name: value for name, value in message.items() if name not in READ_FIELDS}
    text, refusal = clean(text), clean(refusal)
    calls = tuple(clean.calls(_calls(message, clean)))
    return _ChoiceText(text, refusal, calls, clean.extra(extra_text(other_fields, clean.without_key)), not message)


def _texts(content: object, refusals: list[Any]) -> Iterator[str]:
    """Yield the texts of a message's content. The content can be a text, a list of parts, or a JSON value that the server has
    parsed, which becomes text again. Refusals in parts are added to `refusals`; thoughts and other parts are left out."""
    if content is None or isinstance(content, str):
        yield content or ""
        return
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    parts = content if isinstance(content, list) else [content]
    if content not in ([], {}) and not any(map(_is_part, parts)):
        yield _as_json(content)
        return
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and part.get("type") not in THOUGHTS and not part.get("thought"):
            text = part.get("text")
            text = text.get("value") if isinstance(text, dict) else text
            yield text if isinstance(text, str) else ""
            refusals.append(part.get("refusal"))


def _is_part(part: object) -> bool:
    """Return whether a value is a part of a message's content."""
    if isinstance(part, dict):
        return part.get("type") in (*PARTS, *THOUGHTS) or ("text" in part and part.keys() <= {"text", "thought"})
    return isinstance(part, str)


def _as_json(value: object) -> str:
    """Return a value as JSON; "" if it is nested too deeply."""
    try:
        return json_text(value)
    except RecursionError:
        return ""


def _calls(message: Mapping[str, Any], clean: _TextCleaner) -> Iterator[ToolCall]:
    """Yield the tool calls of a message, and the single call of the older API. Arguments that a server has parsed become text
    again."""
    value = message.get("tool_calls") or []
    calls = list(value) if isinstance(value, list) else [value]
    if legacy := message.get("function_call"):
        calls.append({"function": legacy})
    for number, call in enumerate(calls, start=1):
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        name, arguments, own_id = function.get("name"), function.get("arguments"), call.get("id")
        id_ = str(own_id) if own_id and isinstance(own_id, str | int) else f"call_{number}"
        arguments_text = arguments if isinstance(arguments, str) else _as_json({} if arguments is None else arguments)
        extra = "" if function is call else clean.extra(call_extra(call, function, clean.without_key))
        yield ToolCall(clean(id_), clean(name) if isinstance(name, str) else "", clean(arguments_text), extra)


def _usage_in(document: Mapping[str, Any], choice: Mapping[str, Any], wrote_something: bool) -> Usage | None:
    """Return the usage of a completion. OpenAI puts it beside the choices; Moonshot and Groq put it, in a stream, into the
    choice or into `x_groq`."""
    groq = document.get("x_groq")
    holders = (document, choice, groq if isinstance(groq, dict) else {})
    return next((usage for holder in holders if (usage := usage_of(holder.get("usage"), wrote_something))), None)


def usage_of(counted: object, wrote_something: bool = True) -> Usage | None:
    """Return the provider's token counts; None if they are unusable, such as zero tokens for a prompt. A good reply is not lost
    for unusable counts."""
    if not isinstance(counted, dict):
        return None
    tokens_in = _count(counted, "prompt_tokens", "input_tokens")
    tokens_out = _count(counted, "completion_tokens", "output_tokens")
    if not tokens_in:
        return None
    total = _count(counted, "total_tokens") or 0
    if wrote_something and not tokens_out:
        tokens_out = max(0, total - tokens_in) or None
    elif tokens_out:
        thought = _detail(counted, "completion_tokens_details", "reasoning_tokens") or 0
        if total == tokens_in + tokens_out + thought:
            tokens_out += thought  # xAI does not count thought tokens as completion tokens
    return None if tokens_out is None else Usage(tokens_in, tokens_out, _cached_of(counted, tokens_in))


def _count(counted: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of these fields that holds a count; None if none does."""
    for name in names:
        try:
            return _COUNT.validate_python(counted.get(name))
        except ValidationError:
            continue
    return None


def _detail(counted: Mapping[str, Any], group: str, name: str) -> int | None:
    """Return the count in the field `name` of the object `group`; None if there is none."""
    details = counted.get(group)
    return _count(details, name) if isinstance(details, dict) else None


def _cached_of(counted: Mapping[str, Any], tokens_in: int) -> int | None:
    """Return how many of a prompt's tokens were in the provider's cache; None if the number is missing or impossible."""
    cached = _detail(counted, "prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = _count(counted, "prompt_cache_hit_tokens", "cached_tokens")  # DeepSeek's and Moonshot's fields
    return cached if cached is not None and cached <= tokens_in else None
