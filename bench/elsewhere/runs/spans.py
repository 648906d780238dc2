"""Reads spans in the forms in which programs write them: OTLP's JSON and Tempo's, with their log records; Jaeger's JSON; and
the forms of OpenTelemetry's console exporter, of its exporter for Go, and of Phoenix."""

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

MAX_PATH_NAMES = 24
"""The most names in the path of an attribute."""
MAX_ID_LENGTH = 24
"""The number of characters of a trace's id in base64; a span's id has half as many."""


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


OR_NULL = BeforeValidator(lambda value: [] if value is None else value)
"""Reads a list that is null as an empty list."""


def _alias(*names: str, default: Any = "") -> Any:
    """Return a pydantic field that is read under any of these names."""
    return Field(default, validation_alias=AliasChoices(*names))


Rows = Annotated[Listed[BoundedTable[str, Any]], OR_NULL]
Pairs = Annotated[Listed[BoundedTable[str, Any]] | BoundedTable[str, Any], OR_NULL]
Status = Annotated[BoundedTable[str, Any], BeforeValidator(lambda value: value if isinstance(value, dict) else {})]
Id = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class OtlpEvent(BaseModel):
    name: Id = ""
    attributes: Pairs = []


class OtlpSpan(BaseModel):
    trace: str = _alias("traceId", "trace_id")
    id: Id = _alias("spanId", "span_id")
    parent: Id = _alias("parentSpanId", "parent_span_id")
    name: Id = ""
    start: int = _alias("startTimeUnixNano", "start_time_unix_nano", default=0)
    end: int = _alias("endTimeUnixNano", "end_time_unix_nano", default=0)
    status: Status = {}
    attributes: Pairs = []
    events: Annotated[Listed[OtlpEvent], OR_NULL] = []


class OtlpScope(BaseModel):
    spans: Annotated[Listed[OtlpSpan], OR_NULL] = []


class OtlpResource(BaseModel):
    scopes: Annotated[Listed[OtlpScope], OR_NULL] = _alias(
        "scopeSpans", "scope_spans", "instrumentationLibrarySpans", default=[]
    )


class OtlpLog(BaseModel):
    trace: Id = _alias("traceId", "trace_id")
    span: Id = _alias("spanId", "span_id")
    name: Id = _alias("eventName", "event_name")
    body: Any = None
    attributes: Pairs = []


class OtlpLogScope(BaseModel):
    logs: Annotated[Listed[OtlpLog], OR_NULL] = _alias("logRecords", "log_records", default=[])


class OtlpLogResource(BaseModel):
    scopes: Annotated[Listed[OtlpLogScope], OR_NULL] = _alias("scopeLogs", "scope_logs", default=[])


class OtlpRequest(BaseModel):
    """The parts of OTLP's JSON that are read here."""

    resources: Annotated[Listed[OtlpResource], OR_NULL] = _alias("resourceSpans", "resource_spans", "batches", default=[])
    logs: Annotated[Listed[OtlpLogResource], OR_NULL] = _alias("resourceLogs", "resource_logs", default=[])


class JaegerReference(BaseModel):
    span: Id = _alias("spanID")


class JaegerLog(BaseModel):
    fields: Rows = []


class JaegerSpan(BaseModel):
    trace: str = Field(validation_alias="traceID")
    id: Id = _alias("spanID")
    name: Id = _alias("operationName")
    start: int = _alias("startTime", default=0)
    duration: int = 0
    references: Annotated[Listed[JaegerReference], OR_NULL] = []
    tags: Rows = []
    logs: Annotated[Listed[JaegerLog], OR_NULL] = []


class JaegerTrace(BaseModel):
    spans: Listed[JaegerSpan]


class JaegerTraces(BaseModel):
    data: Listed[JaegerTrace]


class WrittenContext(BaseModel):
    trace: str = Field(validation_alias="trace_id")
    span: Id = _alias("span_id")


class WrittenSpan(BaseModel):
    """A span as the console exporter and Phoenix write it."""

    name: Id = ""
    kind: Id = _alias("span_kind")
    context: WrittenContext
    parent: Id = _alias("parent_id")
    start: datetime | None = _alias("start_time", default=None)
    end: datetime | None = _alias("end_time", default=None)
    status: Status = {}
    status_code: Id = ""
    attributes: BoundedTable[str, Any] = {}
    events: Annotated[Listed[OtlpEvent], OR_NULL] = []


class GoSpan(BaseModel):
    """A span as OpenTelemetry's exporter for Go writes it."""

    name: Id = _alias("Name")
    context: BoundedTable[str, Any] = Field(validation_alias="SpanContext")
    parent: BoundedTable[str, Any] = _alias("Parent", default={})
    start: datetime | None = _alias("StartTime", default=None)
    attributes: Annotated[Listed[BoundedTable[str, Any]], OR_NULL] = _alias("Attributes", default=[])
    events: Annotated[Listed[BoundedTable[str, Any]], OR_NULL] = _alias("Events", default=[])
    status: BoundedTable[str, Any] = _alias("Status", default={})


OTLP_KEYS = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")


def holds_spans(value: Any) -> bool:
    """Return whether a value has a form that `spans_of` can read."""
    return isinstance(value, dict) and (
        any(key in value for key in OTLP_KEYS) or _is_jaeger(value) or _is_written(value) or _is_of_go(value)
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
            key = (span.trace, span.id, 0 if span.id else len(spans))  # spans without an id are all different
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
            yield from map(_span_of_jaeger, trace.spans)
    elif _is_of_go(value):
        yield _span_of_go(GoSpan.model_validate(value))
    elif _is_written(value):
        yield _span_of_written(WrittenSpan.model_validate(value))
    else:
        request = OtlpRequest.model_validate(value)
        for resource in request.resources:
            for scope in resource.scopes:
                yield from map(_span_of_otlp, scope.spans)
        for logged in request.logs:
            for entries in logged.scopes:
                for log in entries.logs:
                    logs[hex_id(log.trace), hex_id(log.span)].append(_event_of_log(log))


def _span_of_otlp(span: OtlpSpan) -> TracedSpan:
    """Return a span in OTLP's JSON in the common form."""
    events = [SpanEvent(event.name, attributes_of(event.attributes)) for event in span.events]
    trace, id_, parent = hex_id(span.trace), hex_id(span.id), hex_id(span.parent)
    attributes = attributes_of(span.attributes)
    failed = has_failed(span.status.get("code"), attributes)
    return TracedSpan(trace, id_, parent, span.name, span.start, attributes, events, span.end, failed, _error_of(span.status))


def _event_of_log(log: OtlpLog) -> SpanEvent:
    """Return a log record as an event."""
    attributes = attributes_of(log.attributes)
    body = plain_value(log.body)
    fields = body if isinstance(body, dict) else {} if body is None else {"content": body}
    return SpanEvent(log.name or str(attributes.get("event.name", "")), {**attributes, **fields})


def _span_of_jaeger(span: JaegerSpan) -> TracedSpan:
    """Return a span of Jaeger in the common form."""
    events = [attributes_of(log.fields) for log in span.logs]
    span_events = [SpanEvent(str(fields.get("event", "")), fields) for fields in events]
    parent = span.references[0].span if span.references else ""
    tags, start = attributes_of(span.tags), span.start * 1000
    failed = has_failed(tags.get("otel.status_code") or ("ERROR" if tags.get("error") in (True, "true") else ""), tags)
    ids, error = (span.trace, span.id, parent), str(tags.get("otel.status_description") or "")
    return TracedSpan(*ids, span.name, start, tags, span_events, start + span.duration * 1000, failed, error)


def _span_of_go(span: GoSpan) -> TracedSpan:
    """Return a span of OpenTelemetry's exporter for Go in the common form."""
    status = {"status_code": "ERROR" if span.status.get("Code") == "Error" else "UNSET", **span.status}
    events = [OtlpEvent(name=str(row.get("Name")), attributes=_attributes_of_go(row.get("Attributes"))) for row in span.events]
    return _span_of_written(
        WrittenSpan(
            name=span.name,
            context=WrittenContext(trace_id=span.context["TraceID"], span_id=span.context.get("SpanID", "")),
            parent_id=span.parent.get("SpanID", ""),
            start_time=span.start,
            attributes=_attributes_of_go(span.attributes),
            events=events,
            status=status,
        )
    )


def _attributes_of_go(pairs: Any) -> dict[str, Any]:
    """Return attributes by name, from the keys and values that Go writes."""
    tables = [pair for pair in pairs or [] if isinstance(pair, dict)] if isinstance(pairs, list | None) else []
    return {
        str(pair.get("Key")): pair["Value"].get("Value") if isinstance(pair.get("Value"), dict) else pair.get("Value")
        for pair in tables
    }


def _span_of_written(span: WrittenSpan) -> TracedSpan:
    """Return a span of the console exporter or of Phoenix in the common form."""
    attributes = flatten(span.attributes)
    if span.kind.isupper():
        attributes.setdefault("openinference.span.kind", span.kind)
    events = [SpanEvent(event.name, attributes_of(event.attributes)) for event in span.events]
    failed = has_failed(span.status.get("status_code") or span.status_code, attributes)
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


def has_failed(code: Any, attributes: Mapping[str, Any]) -> bool | None:
    """Return whether a span failed, according to its status and attributes; None if neither says so."""
    word = str(code or "").upper().removeprefix("STATUS_CODE_")
    if word in ("2", "ERROR") or attributes.get("error.type"):
        return True
    return False if word in ("1", "OK") else None


def attributes_of(pairs: list[dict[str, Any]] | dict[str, Any]) -> dict[str, Any]:
    """Return attributes by name, from a list of keys and values or from a table."""
    if isinstance(pairs, dict):
        return flatten(pairs)
    return {str(pair.get("key")): plain_value(pair.get("value")) for pair in pairs}


def plain_value(value: Any) -> Any:
    """Return the value inside an OTLP value, such as 5 in `{"intValue": "5"}` or `{"int_value": "5"}`. A value in no such
    wrapping is returned unchanged."""
    if not isinstance(value, dict):
        return value
    kind, inner = next(iter(value.items()), ("", None))
    kind = kind.replace("_v", "V")
    if kind in ("arrayValue", "kvlistValue"):
        values = inner.get("values") if isinstance(inner, dict) else None
        if kind == "arrayValue":
            return [plain_value(item) for item in values or []]
        return {str(pair.get("key")): plain_value(pair.get("value")) for pair in values or [] if isinstance(pair, dict)}
    if kind == "bytesValue" and isinstance(inner, str):
        try:
            return base64.b64decode(inner, validate=True).decode()
        except (ValueError, binascii.Error):
            return inner
    if kind == "intValue" and isinstance(inner, str) and inner.removeprefix("-").isdecimal() and len(inner) < MAX_ID_LENGTH:
        return int(inner)
    return inner if kind.endswith("Value") else value


def flatten(table: Mapping[str, Any], depth: int = MAX_PATH_NAMES) -> dict[str, Any]:
    """Return a table in which nested tables are replaced by keys with dots. Lists are unchanged."""
    flattened = dict[str, Any]()
    for key, value in table.items():
        if isinstance(value, dict) and value and depth:
            flattened |= {f"{key}.{name}": inner for name, inner in flatten(value, depth - 1).items()}
        else:
            flattened[str(key)] = value
    return flattened


def value_at(attributes: Mapping[str, Any], name: str) -> Any:
    """Return the value under a name. If there is none, return the table that the keys `NAME.…` describe, or, if these keys are
    numbered like `NAME.0.role`, the list of tables."""
    if (value := attributes.get(name)) not in (None, "", [], {}):
        return value
    root = dict[str, Any]()
    for key in sorted(key for key in attributes if key.startswith(f"{name}.")):
        *path, last = key[len(name) + 1 :].split(".", MAX_PATH_NAMES)
        node = root
        for word in path:
            inner = node.get(word)
            node = node.setdefault(word, {}) if isinstance(inner, dict | None) else node
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
    if len(id_) in (12, MAX_ID_LENGTH) and id_.endswith("="):
        try:
            return base64.b64decode(id_, validate=True).hex()
        except (ValueError, binascii.Error):
            return id_
    return id_
