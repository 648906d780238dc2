"""The paper's task at the paper's size: the incident in one short log, and shorter forms of answer.

A monolithic call is some 900 tokens in all, as in the paper's Table 2; in the pack's first variant it is three times as long.
Whether a round of `static` is dearer than one of `monolithic` follows from such sizes. See README.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from bench.run.packs import PackFolder
from bench.scenario import Context, Output, Scenario, Subtask

from . import checks
from .grader_paper_sized import baseline, grade

VARIANTS = ("paper_sized",)
SECRETS = ("unbounded", "deployment regression", "kubectl rollout undo")
Event = Literal["cache_full", "bulk_load", "heap_growth", "pool_exhausted", "oom_kill"]


class Signal(Output):
    time: str
    what: str


class LogTriage(Output):
    signals: list[Signal]


class Anomaly(Output):
    anomaly: Event
    type: str
    severity: str
    confidence: Annotated[float, Field(ge=0, le=1)]


class AnomalyClassification(Output):
    anomalies: list[Anomaly]


class RootCauseAnalysis(Output):
    trigger: Literal["deployment", "cache_full", "traffic_spike"]
    mechanism: Literal["unbounded_batch_in_memory", "cache_growth", "limit_too_low"]
    causal_chain: list[str] = Field(description="anomalies, causes first")
    summary: str


class RemediationPlan(Output):
    commands: list[str]


class IncidentReport(Output):
    severity: Literal["low", "high", "critical"]
    summary: str


def chain_is_of_anomalies(output: RootCauseAnalysis, context: Context) -> str | None:
    named = {one.anomaly for one in context.outputs["anomaly_classification"].anomalies}
    stranger = next((step for step in output.causal_chain if step not in named), None)
    return f"causal_chain names '{stranger}', which is no anomaly of anomaly_classification" if stranger else None


def scenario(folder: PackFolder) -> Scenario:
    own = PackFolder(folder.path / folder.variant, folder.variant)
    made = own.scenario(_subtasks(own), grade=grade, baseline=baseline, secrets=SECRETS)
    return replace(made, task=replace(made.task, name=folder.name))


def _subtasks(folder: PackFolder) -> tuple[Subtask, ...]:
    asked: tuple[tuple[str, tuple[str, ...], type[Output], dict[str, Any]], ...] = (
        (
            "log_triage",
            ("incident.log",),
            LogTriage,
            {"checks": (checks.signals_have_their_times_from_the_documents,), "sufficient": checks.enough_signals},
        ),
        (
            "anomaly_classification",
            ("log_triage",),
            AnomalyClassification,
            {"checks": (checks.anomalies_are_distinct,), "sufficient": checks.confident_anomalies},
        ),
        (
            "root_cause_analysis",
            ("log_triage", "anomaly_classification"),
            RootCauseAnalysis,
            {"checks": (checks.chain_is_a_chain, chain_is_of_anomalies)},
        ),
        (
            "remediation_planning",
            ("root_cause_analysis",),
            RemediationPlan,
            {"checks": (checks.commands_are_safe,), "sufficient": checks.some_command},
        ),
        ("report_synthesis", ("root_cause_analysis", "remediation_planning"), IncidentReport, {}),
    )
    return tuple(Subtask(name, folder.prompt(name), reads, output, **more) for name, reads, output, more in asked)
