"""Spans in the forms of files that programs write: OTLP's JSON and Tempo's, with their log records, Jaeger's, and those that
OpenTelemetry's console exporter and Phoenix write."""

from __future__ import annotations

import base64
import binascii
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from bench.common.bounds import BoundedTable, Listed

MOST_NESTED = 24
"""Names in the path of an attribute."""
LONG_ID = 24
"""Characters of a trace's id in base64."""


@dataclass(frozen=True)
class SpanEvent:
    """An event of a span, or a log record of the span. `fields` are its attributes and the content of its body."""

    name: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class TracedSpan:
    """A span with its attributes by name.

    start, end   the times in nanoseconds, 0 if unknown
    failed       whether the status says that the span failed; None if it does not say
    error        the error in the status
    """

    trace: str
    id: str
    parent: str
    name: str
    start: int
    attributes: Mapping[str, Any]
    events: list[SpanEvent] = field(default_factory=list)
    end: int = 0
    failed: bool | None = None
    error: str = ""


SOME = BeforeValidator(lambda value: [] if value is None else value)
"""Reads a list that is null as an empty list."""


def _any(*names: str, default: Any = "") -> Any:
    return Field(default, validation_alias=AliasChoices(*names))


Rows = Annotated[Listed[BoundedTable[str, Any]], SOME]
Pairs = Annotated[Listed[BoundedTable[str, Any]] | BoundedTable[str, Any], SOME]
Status = Annotated[BoundedTable[str, Any], BeforeValidator(lambda value: value if isinstance(value, dict) else {})]
Id = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class OtlpEvent(BaseModel):
    name: Id = ""
    attributes: Pairs = []


class OtlpSpan(BaseModel):
    trace: str = _any("traceId", "trace_id")
    id: Id = _any("spanId", "span_id")
    parent: Id = _any("parentSpanId", "parent_span_id")
    name: Id = ""
    start: int = _any("startTimeUnixNano", "start_time_unix_nano", default=0)
    end: int = _any("endTimeUnixNano", "end_time_unix_nano", default=0)
    status: Status = {}
    attributes: Pairs = []
    events: Annotated[Listed[OtlpEvent], SOME] = []


class OtlpScope(BaseModel):
    spans: Annotated[Listed[OtlpSpan], SOME] = []


class OtlpResource(BaseModel):
    scopes: Annotated[Listed[OtlpScope], SOME] = _any("scopeSpans", "scope_spans", "instrumentationLibrarySpans", default=[])


class OtlpLog(BaseModel):
    trace: Id = _any("traceId", "trace_id")
    span: Id = _any("spanId", "span_id")
    name: Id = _any("eventName", "event_name")
    body: Any = None
    attributes: Pairs = []


class OtlpLogScope(BaseModel):
    logs: Annotated[Listed[OtlpLog], SOME] = _any("logRecords", "log_records", default=[])


class OtlpLogResource(BaseModel):
    scopes: Annotated[Listed[OtlpLogScope], SOME] = _any("scopeLogs", "scope_logs", default=[])


class OtlpRequest(BaseModel):
    """The parts of OTLP's JSON that are read here."""

    resources: Annotated[Listed[OtlpResource], SOME] = _any("resourceSpans", "resource_spans", "batches", default=[])
    logs: Annotated[Listed[OtlpLogResource], SOME] = _any("resourceLogs", "resource_logs", default=[])


class JaegerReference(BaseModel):
    span: Id = _any("spanID")


class JaegerLog(BaseModel):
    fields: Rows = []


class JaegerSpan(BaseModel):
    trace: str = Field(validation_alias="traceID")
    id: Id = _any("spanID")
    name: Id = _any("operationName")
    start: int = _any("startTime", default=0)
    duration: int = 0
    references: Annotated[Listed[JaegerReference], SOME] = []
    tags: Rows = []
    logs: Annotated[Listed[JaegerLog], SOME] = []


class JaegerTrace(BaseModel):
    spans: Listed[JaegerSpan]


class JaegerTraces(BaseModel):
    data: Listed[JaegerTrace]


class WrittenContext(BaseModel):
    trace: str = Field(validation_alias="trace_id")
    span: Id = _any("span_id")


class WrittenSpan(BaseModel):
    """A span as the console exporter and Phoenix write it."""

    name: Id = ""
    kind: Id = _any("span_kind")
    context: WrittenContext
    parent: Id = _any("parent_id")
    start: datetime | None = _any("start_time", default=None)
    end: datetime | None = _any("end_time", default=None)
    status: Status = {}
    status_code: Id = ""
    attributes: BoundedTable[str, Any] = {}
    events: Annotated[Listed[OtlpEvent], SOME] = []


class GoSpan(BaseModel):
    """A span as OpenTelemetry's exporter for Go writes it."""

    name: Id = _any("Name")
    context: BoundedTable[str, Any] = Field(validation_alias="SpanContext")
    parent: BoundedTable[str, Any] = _any("Parent", default={})
    start: datetime | None = _any("StartTime", default=None)
    attributes: Annotated[Listed[BoundedTable[str, Any]], SOME] = _any("Attributes", default=[])
    events: Annotated[Listed[BoundedTable[str, Any]], SOME] = _any("Events", default=[])
    status: BoundedTable[str, Any] = _any("Status", default={})


OTLP = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")


def holds_spans(value: Any) -> bool:
    """Return whether a value has a form that `spans_of` can read."""
    return isinstance(value, dict) and (
        any(key in value for key in OTLP) or _is_jaeger(value) or _is_written(value) or _is_of_go(value)
    )


def _is_jaeger(value: Mapping[str, Any]) -> bool:
    """Return whether a value is Jaeger's JSON."""
    data = value.get("data")
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "spans" in data[0]


def _is_written(value: Mapping[str, Any]) -> bool:
    """Return whether a value is a span of the console exporter or of Phoenix."""
    return isinstance(value.get("context"), dict) and "trace_id" in value["context"]


def _is_of_go(value: Mapping[str, Any]) -> bool:
    """Return whether a value is a span of OpenTelemetry's exporter for Go."""
    return isinstance(value.get("SpanContext"), dict) and "TraceID" in value["SpanContext"]


def spans_of(values: Sequence[dict[str, Any]], left_out: Counter[str]) -> list[TracedSpan]:
    """Return the spans in a file's values. A log record becomes an event of its span. A span that is in the file twice is
    read once."""
    spans, logs = dict[tuple[str, str, int], TracedSpan](), defaultdict[tuple[str, str], list[SpanEvent]](list)
    for value in values:
        for span in _spans(value, logs):
            key = (span.trace, span.id, 0 if span.id else len(spans))
            if key in spans:
                left_out["span that stands twice in the file"] += 1
            spans[key] = span
    for (trace, id_), events in logs.items():
        if not id_ or (trace, id_, 0) not in spans:
            left_out["log record of a span that the file does not hold"] += len(events)
        else:
            spans[trace, id_, 0].events.extend(events)
    return sorted(spans.values(), key=lambda span: span.start)


def _spans(value: dict[str, Any], logs: defaultdict[tuple[str, str], list[SpanEvent]]) -> Iterator[TracedSpan]:
    """Yield the spans of one value, and add its log records to `logs`."""
    if _is_jaeger(value):
        for trace in JaegerTraces.model_validate(value).data:
            yield from map(_of_jaeger, trace.spans)
    elif _is_of_go(value):
        yield _of_go(GoSpan.model_validate(value))
    elif _is_written(value):
        yield _of_written(WrittenSpan.model_validate(value))
    else:
        request = OtlpRequest.model_validate(value)
        for resource in request.resources:
            for scope in resource.scopes:
                yield from map(_of_otlp, scope.spans)
        for logged in request.logs:
            for entries in logged.scopes:
                for log in entries.logs:
                    logs[hex_id(log.trace), hex_id(log.span)].append(_of_log(log))


def _of_otlp(span: OtlpSpan) -> TracedSpan:
    """Return a span in OTLP's JSON in the common form."""
    events = [SpanEvent(event.name, attributes_of(event.attributes)) for event in span.events]
    trace, id_, parent = hex_id(span.trace), hex_id(span.id), hex_id(span.parent)
    attributes = attributes_of(span.attributes)
    failed = failed_by(span.status.get("code"), attributes)
    return TracedSpan(trace, id_, parent, span.name, span.start, attributes, events, span.end, failed, _error_of(span.status))


def _of_log(log: OtlpLog) -> SpanEvent:
    """Return a log record as an event."""
    attributes = attributes_of(log.attributes)
    body = plain(log.body)
    fields = body if isinstance(body, dict) else {} if body is None else {"content": body}
    return SpanEvent(log.name or str(attributes.get("event.name", "")), {**attributes, **fields})


def _of_jaeger(span: JaegerSpan) -> TracedSpan:
    """Return a span of Jaeger in the common form."""
    events = [attributes_of(log.fields) for log in span.logs]
    span_events = [SpanEvent(str(fields.get("event", "")), fields) for fields in events]
    parent = span.references[0].span if span.references else ""
    tags, start = attributes_of(span.tags), span.start * 1000
    failed = failed_by(tags.get("otel.status_code") or ("ERROR" if tags.get("error") in (True, "true") else ""), tags)
    ids, error = (span.trace, span.id, parent), str(tags.get("otel.status_description") or "")
    return TracedSpan(*ids, span.name, start, tags, span_events, start + span.duration * 1000, failed, error)


def _of_go(span: GoSpan) -> TracedSpan:
    """Return a span of OpenTelemetry's exporter for Go in the common form."""
    status = {"status_code": "ERROR" if span.status.get("Code") == "Error" else "UNSET", **span.status}
    return _of_written(
        WrittenSpan(
            name=span.name,
            context=WrittenContext(trace_id=span.context["TraceID"], span_id=span.context.get("SpanID", "")),
            parent_id=span.parent.get("SpanID", ""),
            start_time=span.start,
            attributes=_of_pairs(span.attributes),
            events=[
                OtlpEvent(name=str(event.get("Name")), attributes=_of_pairs(event.get("Attributes"))) for event in span.events
            ],
            status=status,
        )
    )


def _of_pairs(pairs: Any) -> dict[str, Any]:
    """Return attributes by name, from the keys and values that Go writes."""
    tables = [pair for pair in pairs or [] if isinstance(pair, dict)] if isinstance(pairs, list | None) else []
    return {
        str(pair.get("Key")): pair["Value"].get("Value") if isinstance(pair.get("Value"), dict) else pair.get("Value")
        for pair in tables
    }


def _of_written(span: WrittenSpan) -> TracedSpan:
    """Return a span of the console exporter or of Phoenix in the common form."""
    attributes = flat(span.attributes)
    if span.kind.isupper():
        attributes.setdefault("openinference.span.kind", span.kind)
    events = [SpanEvent(event.name, attributes_of(event.attributes)) for event in span.events]
    failed = failed_by(span.status.get("status_code") or span.status_code, attributes)
    ids = span.context.trace, span.context.span, span.parent
    start, end = nanoseconds(span.start), nanoseconds(span.end)
    return TracedSpan(*ids, span.name, start, attributes, events, end, failed, _error_of(span.status))


def _error_of(status: Mapping[str, Any]) -> str:
    """Return the error text in a span's status, in any of the three spellings."""
    return str(next((status[name] for name in ("message", "description", "Description") if status.get(name)), ""))


def nanoseconds(time: datetime | None) -> int:
    """Return a time in nanoseconds since 1970; 0 for None."""
    if time is None:
        return 0
    return (time.replace(tzinfo=time.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def failed_by(code: Any, attributes: Mapping[str, Any]) -> bool | None:
    """Return whether a span failed, according to its status and attributes; None if neither says so."""
    word = str(code or "").upper().removeprefix("STATUS_CODE_")
    if word in ("2", "ERROR") or attributes.get("error.type"):
        return True
    return False if word in ("1", "OK") else None


def attributes_of(pairs: list[dict[str, Any]] | dict[str, Any]) -> dict[str, Any]:
    """Return attributes by name, from a list of keys and values or from a table."""
    if isinstance(pairs, dict):
        return flat(pairs)
    return {str(pair.get("key")): plain(pair.get("value")) for pair in pairs}


def plain(value: Any) -> Any:
    """Return the value inside an OTLP value: a text, a number, a list or a table."""
    if not isinstance(value, dict):
        return value
    kind, inner = next(iter(value.items()), ("", None))
    kind = kind.replace("_v", "V")
    if kind in ("arrayValue", "kvlistValue"):
        values = inner.get("values") if isinstance(inner, dict) else None
        if kind == "arrayValue":
            return [plain(item) for item in values or []]
        return {str(pair.get("key")): plain(pair.get("value")) for pair in values or [] if isinstance(pair, dict)}
    if kind == "bytesValue" and isinstance(inner, str):
        try:
            return base64.b64decode(inner, validate=True).decode()
        except (ValueError, binascii.Error):
            return inner
    if kind == "intValue" and isinstance(inner, str) and inner.removeprefix("-").isdecimal() and len(inner) < LONG_ID:
        return int(inner)
    return inner if kind.endswith("Value") else value


def flat(table: Mapping[str, Any], depth: int = MOST_NESTED) -> dict[str, Any]:
    """Return a table in which nested tables are replaced by keys with dots. Lists are unchanged."""
    flattened = dict[str, Any]()
    for key, value in table.items():
        if isinstance(value, dict) and value and depth:
            flattened |= {f"{key}.{name}": inner for name, inner in flat(value, depth - 1).items()}
        else:
            flattened[str(key)] = value
    return flattened


def nested(attributes: Mapping[str, Any], name: str) -> Any:
    """Return the value under a name. If there is none, the keys that begin with the name make a table, or, if they are
    numbered like `NAME.0.role`, a list of tables."""
    if (value := attributes.get(name)) not in (None, "", [], {}):
        return value
    root = dict[str, Any]()
    for key in sorted(key for key in attributes if key.startswith(f"{name}.")):
        *path, last = key[len(name) + 1 :].split(".", MOST_NESTED)
        node = root
        for step in path:
            inner = node.get(step)
            node = node.setdefault(step, {}) if isinstance(inner, dict | None) else node
        node[last] = attributes[key]
    return _with_lists(root) if root else None


def _with_lists(node: Any) -> Any:
    """Return nested tables with numbered keys as lists."""
    if not isinstance(node, dict):
        return node
    values = {key: _with_lists(value) for key, value in node.items()}
    if values and all(key.isdecimal() for key in values):
        return [values[key] for key in sorted(values, key=lambda key: (len(key), key))]
    return values


def hex_id(id_: str) -> str:
    """Return an id in hex, as in OTLP's JSON. Programs that use protobuf's own JSON write base64."""
    if len(id_) in (12, LONG_ID) and id_.endswith("="):
        try:
            return base64.b64decode(id_, validate=True).hex()
        except (ValueError, binascii.Error):
            return id_
    return id_
