"""Traces of an agent: the spans that are calls of a model or of tools, by the conventions of the recording programs.

Tables name the attributes for each kind of content: OpenTelemetry's semantic conventions for generative AI in their present
and earlier forms, OpenInference, OpenLLMetry, and additions of some frameworks. The first attribute with a value is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.elsewhere.runs.messages import (
    ImportedMessage,
    are_parts,
    as_text,
    message_of,
    tables_in,
    text_of_result,
    unwrap,
    value_of,
)
from bench.elsewhere.runs.spans import SpanEvent, TracedSpan, value_at
from bench.elsewhere.runs.steps import OpenCall, RunBuilder, StepCost, as_shown

PROMPT_KEYS = (
    "gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "llm.prompts", "ai.prompt.messages",
    "gcp.vertex.agent.llm_request", "langfuse.observation.input", "mlflow.spanInputs", "braintrust.input_json", "input.value",
)  # fmt: skip
REPLY_KEYS = (
    "gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "llm.completions", "llm.choices", "ai.response",
    "gcp.vertex.agent.llm_response", "langfuse.observation.output", "mlflow.spanOutputs", "braintrust.output_json",
    "output.value",
)  # fmt: skip
KEYS_OF_ANY_SPAN = REPLY_KEYS[-4:]
"""The reply keys that spans of every kind can have."""
LONG_TEXT_LENGTH = 40
"""The least number of characters of an unknown attribute that may hold the words of a model."""
SYSTEM_KEYS = ("gen_ai.system_instructions", "gen_ai.system.instructions")
TOOL_DEFINITION_KEYS = ("gen_ai.tool.definitions", "llm.tools", "llm.request.functions", "ai.prompt.tools")
TOOL_NAME_KEYS = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "ai.toolCall.name")
TOOL_ID_KEYS = ("gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id")
TOOL_ARGUMENT_KEYS = (
    "gen_ai.tool.call.arguments", "tool.parameters", "ai.toolCall.args", "gcp.vertex.agent.tool_call_args",
    "traceloop.entity.input", "langfuse.observation.input", "mlflow.spanInputs", "braintrust.input_json", "input.value",
    "input",
)  # fmt: skip
TOOL_RESULT_KEYS = (
    "gen_ai.tool.call.result", "gen_ai.tool.call.response", "ai.toolCall.result", "gcp.vertex.agent.tool_response",
    "traceloop.entity.output", "langfuse.observation.output", "mlflow.spanOutputs", "braintrust.output_json", "output.value",
    "output",
)  # fmt: skip
TOKEN_KEYS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.promptTokens"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion", "ai.usage.completionTokens"),
)
DOLLAR_KEYS = ("gen_ai.usage.cost", "llm.cost.total")
MAX_COUNT = 1e12
CALL_KINDS = (
    "chat", "generate_content", "text_completion", "completion", "llm", "ai.generatetext.dogenerate", "ai.streamtext.dostream",
    "ai.generateobject.dogenerate", "ai.streamobject.dostream", "generation", "chat_model",
)  # fmt: skip
"""The names of operations, and of kinds of spans, that are calls of a model."""
TOOL_KINDS = ("execute_tool", "tool", "ai.toolcall")
OTHER_KINDS = (
    "invoke_agent", "create_agent", "invoke_workflow", "embeddings", "embedding", "retrieval", "agent", "chain", "retriever",
    "reranker", "rerank", "guardrail", "evaluator", "workflow", "task", "plan", "ai.generatetext", "ai.streamtext",
    "ai.generateobject", "ai.streamobject", "span", "event", "parser", "memory", "unknown", "function", "score", "eval",
)  # fmt: skip
KIND_KEYS = (
    "gen_ai.operation.name", "openinference.span.kind", "llm.request.type", "traceloop.span.kind", "langsmith.span.kind",
    "ai.operationId", "langfuse.observation.type", "mlflow.spanType", "braintrust.span_attributes",
)  # fmt: skip
DETAIL_EVENTS = ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion")
"""The names of events that hold attributes of their span."""


def kind_of(span: TracedSpan) -> str:
    """Return the kind of a span: `call` (of a model), `tool`, or another word that the span uses; "" if it has none."""
    kinds = [_kind_word(span.attributes.get(name, "")) for name in KIND_KEYS]
    for kind in kinds:
        if kind in TOOL_KINDS:
            return "tool"
        if kind in CALL_KINDS:
            return "call"
        if kind in OTHER_KINDS:
            return kind
    return "call" if holds_words(span) else next(filter(None, kinds), "")


def _kind_word(value: Any) -> str:
    """Return the kind in the value of an attribute: a word, or JSON with a word."""
    read = value_of(value)
    return str(read.get("type", "") if isinstance(read, dict) else read).strip('"').lower()


def holds_words(span: TracedSpan) -> bool:
    """Return whether a span has a reply, as an attribute or an event. Attributes that any span can have do not count."""
    reply_keys = REPLY_KEYS[: -len(KEYS_OF_ANY_SPAN)]
    replies = [value for key, value in span.attributes.items() if key.startswith(reply_keys)]
    has_reply_event = any(event.name in (*DETAIL_EVENTS, "gen_ai.choice") for event in span.events)
    return has_reply_event or any(value not in ("", "{}", None) for value in replies)


def add_traces(spans: Sequence[TracedSpan], run: RunBuilder) -> None:
    """Add the steps of one trace, whose spans are in order.

    The span of a tool completes the tool call of the reply that asked for it. If no reply asked for it, the tool call belongs
    to the last call of the model that began before the span.
    """
    kinds = {id(span): kind_of(span) for span in spans}
    wrappers = _wrappers(spans, kinds)
    model_calls = [span for span in spans if kinds[id(span)] == "call" and id(span) not in wrappers and _may_reply(span)]
    run.require_size(len(model_calls))
    for span in spans:
        kind = kinds[id(span)]
        if id(span) in wrappers:
            run.left_out["span around another span of the same call"] += 1
        elif kind == "tool":
            run.complete_call(_tool_call(span))
        elif kind == "call":
            _add_call(span, run)
        else:
            run.left_out[f"span '{kind}'" if kind else "span of something else"] += 1
    if not run.steps:
        attributes = (attribute for span in spans for attribute in span.attributes.items())
        run.unread.update(name for name, value in attributes if len(as_text(value)) >= LONG_TEXT_LENGTH)


def _may_reply(span: TracedSpan) -> bool:
    """Return whether a span can have a reply."""
    return holds_words(span) or any(name in span.attributes for name in (*KEYS_OF_ANY_SPAN, "events"))


def _wrappers(spans: Sequence[TracedSpan], kinds: Mapping[int, str]) -> set[int]:
    """Return the spans around another span of the same call, by the ids of their Python objects. They exist because the
    recorders of a framework and of its client both write a span."""
    above = _nearest_calls(spans, kinds)
    tools = {id(span): _tool_name(span) for span in spans if kinds[id(span)] == "tool"}
    wrappers = set[int]()
    for span in spans:
        outer = above[id(span)]
        if id(span) in tools:  # the span around it is of the same tool
            if outer and outer is not span and id(span) not in wrappers and tools.get(id(outer)) == tools[id(span)]:
                wrappers.add(id(outer))
        elif kinds[id(span)] == "call" and id(span) not in wrappers and _may_reply(span):  # all calls around it
            while outer and outer is not span and kinds[id(outer)] == "call" and id(outer) not in wrappers:
                wrappers.add(id(outer))
                outer = above[id(outer)]
    return wrappers


def _nearest_calls(spans: Sequence[TracedSpan], kinds: Mapping[int, str]) -> dict[int, TracedSpan | None]:
    """Return for each span the nearest enclosing span that is a call of a model or of a tool, by the id of the Python
    object."""
    by_id = {span.id: span for span in spans if span.id}
    nearest = dict[int, TracedSpan | None]()
    for span in spans:
        path, outer = [span], by_id.get(span.parent)
        nearest[id(span)] = None  # a span cannot be around itself
        while outer and kinds[id(outer)] not in ("call", "tool") and id(outer) not in nearest:
            nearest[id(outer)] = None
            path.append(outer)
            outer = by_id.get(outer.parent)
        enclosing = nearest.get(id(outer)) if outer and kinds[id(outer)] not in ("call", "tool") else outer
        nearest |= {id(inner): enclosing for inner in path}
    return nearest


def _add_call(span: TracedSpan, run: RunBuilder) -> None:
    """Add the step of a span that is a call of the model."""
    prompt, replies = _words(span, run.left_out)
    if not (replies and replies[0].words):
        run.left_out["call of a model without a recorded reply"] += 1
        run.log.append(_cost(span))
        return
    if more := len(replies) - 1:
        run.left_out["further choice of a reply"] += more
    parts = [as_shown(message.role, message.words) for message in prompt]
    before, new = run.find_repeated(parts)
    for place in new:
        for id_, result in prompt[place].results:
            run.answer(id_, result)
    run.add([parts[place] for place in new], before, replies[0].words, replies[0].calls, _cost(span))


def _cost(span: TracedSpan) -> StepCost:
    """Return the tokens, dollars and times of a call of the model."""
    counts = [_number(_first_value(span.attributes, keys)) for keys in TOKEN_KEYS]
    tokens = None if all(count is None for count in counts) else int(sum(filter(None, counts)))
    return StepCost(tokens, _number(_first_value(span.attributes, DOLLAR_KEYS)), span.start / 1e9, span.end / 1e9)


def _number(value: Any) -> float | None:
    """Return a number in an attribute; None if the value is no number in the bounds."""
    return float(value) if isinstance(value, int | float) and 0 <= value < MAX_COUNT else None


def _words(span: TracedSpan, left_out: Counter[str]) -> tuple[list[ImportedMessage], list[ImportedMessage]]:
    """Return the messages of a call's prompt, and its replies, of which a model can give several."""
    attributes = dict(span.attributes)
    listed = tables_in(value_of(attributes.get("events")))
    events = [*span.events, *(SpanEvent(str(event.get("event.name", "")), event) for event in listed)]
    for event in events:
        if event.name in DETAIL_EVENTS:
            attributes |= event.fields
    prompt = list(_prompt_in_attributes(attributes, left_out)) or list(_prompt_in_events(events, left_out))
    replies = _replies_in_attributes(attributes, left_out) or _choices(
        [_choice(event) for event in events if event.name == "gen_ai.choice"], left_out
    )
    return [*_system_parts(attributes, prompt, left_out), *prompt], replies


def _prompt_in_events(events: Sequence[SpanEvent], left_out: Counter[str]) -> Iterator[ImportedMessage]:
    """Yield the messages of the prompt in events of a span."""
    for event in events:
        words = event.name.removeprefix("gen_ai.")
        if words in ("system.message", "user.message", "assistant.message", "tool.message"):
            yield message_of(_parse_fields(event.fields), left_out, words.partition(".")[0])


def _choice(event: SpanEvent) -> dict[str, Any]:
    """Return the message of an event `gen_ai.choice`, with the fields beside it."""
    message = value_of(value_at(event.fields, "message"))
    return _parse_fields({**event.fields, **(message if isinstance(message, dict) else {"content": message})})


def _parse_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message's fields. Content, tool calls and parts that are JSON in a text are parsed."""
    if all(isinstance(value, str) and value[:1] not in ("[", "{") for value in fields.values()) and not any(
        "." in key for key in fields
    ):
        return dict(fields)
    read = {key: value_of(value_at(fields, key)) for key in ("content", "tool_calls", "parts")}
    if not are_parts(read["content"]):
        read["content"] = value_at(fields, "content")
    return {**fields, **{key: value for key, value in read.items() if value is not None}}


def _system_parts(
    attributes: Mapping[str, Any], prompt: Sequence[ImportedMessage], left_out: Counter[str]
) -> Iterator[ImportedMessage]:
    """Yield the parts of a prompt that are outside its messages: the system instructions and the tools."""
    request = value_of(attributes.get("gcp.vertex.agent.llm_request"))
    config = request.get("config") if isinstance(request, dict) else None
    config = config if isinstance(config, dict) else {}
    system = value_of(_first_value(attributes, SYSTEM_KEYS) or config.get("system_instruction"))
    if system:
        message = message_of({"role": "system", "content": system}, left_out)
        if message.words not in (other.words for other in prompt if other.role in ("system", "developer")):
            yield message
    if tools := _first_value(attributes, TOOL_DEFINITION_KEYS) or config.get("tools"):
        yield ImportedMessage("tools", as_text(tools))


def _first_value(attributes: Mapping[str, Any], names: Sequence[str], empty: Sequence[str] = ("", "{}", "[]")) -> Any:
    """Return the value of the first of these names that has one which is not empty. A name with a dot also finds what lies
    below it (`a.b` finds `a.b.c`); a name without a dot finds only itself."""
    values = (value_at(attributes, name) if "." in name else attributes.get(name) for name in names)
    return next((value for value in values if value is not None and value not in empty), None)


def _prompt_in_attributes(attributes: Mapping[str, Any], left_out: Counter[str]) -> Iterator[ImportedMessage]:
    """Yield the messages of the prompt in the attributes of a span."""
    value = _parse_messages(_first_value(attributes, PROMPT_KEYS), left_out)
    if isinstance(value, dict):
        if system := value.get("system"):
            yield message_of({"role": "system", "content": system}, left_out)
        value = next((value[key] for key in ("messages", "contents", "input", "prompt") if value.get(key)), value)
    messages = [] if value is None else value if isinstance(value, list) else [value]
    for message in messages:
        fields = _parse_fields(unwrap(message)) if isinstance(message, dict) else message
        yield message_of(fields, left_out)


def _replies_in_attributes(attributes: Mapping[str, Any], left_out: Counter[str]) -> list[ImportedMessage]:
    """Return the replies in the attributes of a span."""
    value = _parse_messages(_first_value(attributes, REPLY_KEYS), left_out)
    if isinstance(value, dict):
        if "toolCalls" in value or "finishReason" in value:  # of the AI SDK
            value = {"content": value.get("text") or value.get("object"), "tool_calls": value_of(value.get("toolCalls"))}
        value = next(
            (value[key] for key in ("choices", "candidates", "output", "messages") if tables_in(value.get(key))), [value]
        )
    choices = [] if value is None else value if isinstance(value, list) else [value]
    return _choices(choices, left_out)


def _choices(values: Sequence[Any], left_out: Counter[str]) -> list[ImportedMessage]:
    """Return the alternative replies of a model's call. If at most one value has a finish reason, all values are parts of one
    reply."""
    messages = list[ImportedMessage]()
    for value in values:
        inner = value
        for key in ("message", "content"):
            if isinstance(inner, dict) and isinstance(inner.get(key), dict):
                inner = inner[key]
        fields = _parse_fields(unwrap(inner)) if isinstance(inner, dict) else inner
        messages.append(message_of(fields, left_out, "assistant"))
    if sum(isinstance(value, dict) and bool(value.get("finish_reason")) for value in values) > 1:
        return messages
    if not messages:
        return []
    text = "\n".join(message.text for message in messages if message.text)
    return [ImportedMessage("assistant", text, tuple(call for message in messages for call in message.calls))]


def _parse_messages(value: Any, left_out: Counter[str]) -> Any:
    """Return the messages in a JSON text. A text that is no JSON is returned unchanged, and is counted if it seems to be
    cut-off JSON."""
    read = value_of(value)
    if isinstance(read, str) and read.lstrip()[:1] in ("[", "{"):
        left_out["list of messages that is no JSON (cut off?), read as text"] += 1
    return read


def _tool_name(span: TracedSpan) -> str:
    """Return the name of the tool of a span."""
    return as_text(_first_value(span.attributes, TOOL_NAME_KEYS) or span.name.removeprefix("execute_tool ") or "tool")


def _tool_call(span: TracedSpan) -> OpenCall:
    """Return the tool call of a span."""
    reads = span.attributes.get("recovery_bench.access") == "read"
    arguments, result = (_first_value(span.attributes, names, ("",)) for names in (TOOL_ARGUMENT_KEYS, TOOL_RESULT_KEYS))
    return OpenCall(
        str(_first_value(span.attributes, TOOL_ID_KEYS) or ""),
        _tool_name(span),
        "" if arguments is None else as_text(arguments),
        _words_of_error(span) if result is None else text_of_result(result),
        reads,
        failed=span.failed,
        began=span.start / 1e9,
        ended=span.end / 1e9,
    )


def _words_of_error(span: TracedSpan) -> str:
    """Return the words of a failed span's error: of its exception, of its status, or the error's type; "" if there are none."""
    if not span.failed:
        return ""
    messages = (event.fields.get("exception.message") for event in span.events if event.name == "exception")
    texts = (*messages, span.error, span.attributes.get("error.type"))
    return next((as_text(text) for text in texts if text), "")
