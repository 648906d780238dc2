"""The verifier's part of the pack: what can be said against an output without knowing the truth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from bench.scenario import Context

from .kubectl import parse
from .schemas import AnomalyClassification, IncidentReport, LogTriage, RemediationPlan, RootCauseAnalysis

CONFIDENT_ENOUGH = 0.6
LEAST_SIGNALS = 3
LEAST_STEPS = 3
BEFORE, BEHIND = re.compile(r"[\w-]"), re.compile(r"[\w-]|\.\w")
"""What makes a name that stands beside it a part of another word."""


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _mentioned(name: str, context: Context) -> bool:
    """Whether a document names it, as a whole word: `pay` is not named by `payments`."""
    return any(_stands_in(text, name) for text in context.documents.values())


def _stands_in(text: str, name: str) -> bool:
    at = text.find(name)
    while at >= 0:
        if not (at and BEFORE.match(text, at - 1)) and not BEHIND.match(text, at + len(name)):
            return True
        at = text.find(name, at + 1)
    return False


def signals_have_their_times_from_the_documents(output: LogTriage, context: Context) -> str | None:
    """To the minute, and from any document: a small model takes the right line, but often for another file's."""
    for number, signal in enumerate(output.signals, 1):
        minute = re.fullmatch(r"(\d\d:\d\d)(:\d\d)?", signal.time)
        if not (minute and any(minute[1] in text for text in context.documents.values())):
            return f"signal {number}: the time '{signal.time}' stands in no document; copy the times, only HH:MM or HH:MM:SS"
    return None


def workload_is_in_the_documents(output: LogTriage, context: Context) -> str | None:
    for field in ("namespace", "deployment", "version", "previous_version"):
        value = getattr(output, field)
        written = f"v{value.removeprefix('v')}" if "version" in field else value
        if not _mentioned(written, context):
            return f"{field}: '{value}' stands in no document; copy it as it is written there"
    return None


def anomalies_are_distinct(output: AnomalyClassification, _: Context) -> str | None:
    again = _repeated(anomaly.anomaly for anomaly in output.anomalies)
    return f"the anomaly '{again}' stands twice; name each at most once" if again else None


def chain_is_a_chain(output: RootCauseAnalysis, _: Context) -> str | None:
    if len(output.causal_chain) < LEAST_STEPS:
        return f"causal_chain needs at least {LEAST_STEPS} steps, from the first cause to the last effect"
    again = _repeated(output.causal_chain)
    return f"causal_chain names '{again}' twice; name each step at most once" if again else None


def commands_are_safe(output: RemediationPlan, context: Context) -> str | None:
    is_known = cache(lambda name: _mentioned(name, context))
    for text in output.commands:
        command = parse(text)
        if isinstance(command, str):
            return f"the command '{text}' {command}"
        stranger = command.unknown_name(is_known)
        if stranger is not None:
            return f"the command '{text}' names '{stranger}', which stands in no document; use the names given to you"
    return None


def report_follows_the_analysis(output: IncidentReport, context: Context) -> str | None:
    cause: RootCauseAnalysis = context.outputs["root_cause_analysis"]
    for field in ("component", "trigger"):
        if getattr(output, field) != getattr(cause, field):
            return f"{field} is '{getattr(output, field)}', but root_cause_analysis says '{getattr(cause, field)}'"
    return None


def enough_signals(output: LogTriage) -> str | None:
    return f"fewer than {LEAST_SIGNALS} signals" if len(output.signals) < LEAST_SIGNALS else None


def confident_anomalies(output: AnomalyClassification) -> str | None:
    if not output.anomalies:
        return "no anomaly is named"
    mean = sum(anomaly.confidence for anomaly in output.anomalies) / len(output.anomalies)
    return f"the mean confidence {mean:.2f} is below {CONFIDENT_ENOUGH}" if mean < CONFIDENT_ENOUGH else None


def confident_cause(output: RootCauseAnalysis) -> str | None:
    unsure = output.confidence < CONFIDENT_ENOUGH
    return f"the confidence {output.confidence:.2f} is below {CONFIDENT_ENOUGH}" if unsure else None


def some_command(output: RemediationPlan) -> str | None:
    return None if output.commands else "no command is given"
