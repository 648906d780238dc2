"""The verifier's part of the pack: what can be said against an output without knowing the truth."""

from __future__ import annotations

import re

from bench.scenario import Context

from .cluster import NUMBERS, SIZED
from .schemas import NUMBERED, ChangeFinding, LogFinding, MetricFinding, Remediation, Report, RootCause

Named = LogFinding | MetricFinding | ChangeFinding | RootCause | Remediation | Report
SHORTEST_QUOTE = 12
"""Characters. A shorter quotation could stand anywhere."""


LEVELS = frozenset({"INFO", "WARN", "ERROR", "FATAL", "Normal", "Warning", "HIGH", "LOW", "ok", "-"})


def copied(text: str) -> str:
    """A line as it counts: without its level, which models get wrong in lines that they copy well, and with single blanks."""
    first, *others = text.split() or [""]
    return " ".join(others if first in LEVELS else (first, *others))


def _names(text: str, service: str) -> bool:
    """Whether a text names it: `billing-0` and `billing.internal` do, `rebilling` does not."""
    return service in text and re.search(rf"(?<![\w-]){re.escape(service)}(?!\w)", text) is not None


def _quoted(quote: str, document: str) -> list[str]:
    """The lines of a document in which a quotation stands."""
    wanted = copied(quote)
    return [line for line in document.splitlines() if wanted in copied(line)] if len(wanted) >= SHORTEST_QUOTE else []


def _unknown(service: str, services: list[str], source: str) -> str | None:
    return None if service in services else f"{source} has no service '{service}'; it has {', '.join(services)}"


def _objection(quote: str, service: str, source: str, context: Context) -> str | None:
    lines = _quoted(quote, context.documents[source])
    if not lines:
        return f"'{quote}' is no line of {source}; copy one line as it stands there"
    if not any(_names(line, service) for line in lines):
        return f"the line '{quote}' does not name {service}; copy one that does"
    return None


def evidence_is_a_line_about_the_service(output: LogFinding, context: Context) -> str | None:
    return _objection(output.evidence, output.service, "app.log", context)


def row_is_about_the_service(output: MetricFinding, context: Context) -> str | None:
    return _objection(output.row, output.service, "metrics.txt", context)


def row_has_the_metric(output: MetricFinding, _: Context) -> str | None:
    if output.metric in output.row.split():
        return None
    return f"the row '{output.row}' has no {output.metric}; name the metric that stands in it"


def event_is_a_line_about_the_service(output: ChangeFinding, context: Context) -> str | None:
    return _objection(output.event, output.service, "events.txt", context)


def change_is_listed(output: ChangeFinding, context: Context) -> str | None:
    ids = [line.split()[0] for line in context.documents["changes.txt"].splitlines()]
    if output.change in (*ids, "none"):
        return None
    return f"changes.txt has no change '{output.change}'; it has {', '.join(ids)}, or say none"


def _services(context: Context) -> list[str]:
    return [line.split()[0] for line in context.documents["cluster.txt"].splitlines()[1:]]


def _row(service: str, context: Context) -> dict[str, str]:
    """What the cluster shows of a service, by name."""
    rows = [line.split() for line in context.documents["cluster.txt"].splitlines()[1:]]
    return dict(word.split("=", 1) for name, *words in rows if name == service for word in words)


def service_is_in_the_cluster(output: Named, context: Context) -> str | None:
    return _unknown(output.service, _services(context), "cluster.txt")


def value_fits_the_action(output: Remediation, context: Context) -> str | None:
    action, value = output.action, output.value
    if action in NUMBERED and not (value.isascii() and value.isdigit()):
        return f"value is '{value}', but {action} takes a whole number without a unit"
    row = _row(output.service, context)
    if action in SIZED and row.get(NUMBERS[action]) == value:
        following = f"{NUMBERS[action]}_next"
        return f"value is '{value}', which {output.service} has already; its {following} is {row[following]}"
    if action in ("rollback_image", "revert_config") and not any(_names(text, value) for text in context.documents.values()):
        what = "version" if action == "rollback_image" else "key"
        return f"value is '{value}', but {action} takes a {what} that stands in the documents"
    configs = re.findall(r"config (\w+): (\S+), before (\S+)", context.documents["changes.txt"])
    if action == "revert_config" and any(value in values for _, *values in configs):
        return f"value is '{value}', but {action} takes a key; changes.txt has {', '.join(key for key, *_ in configs)}"
    return None
