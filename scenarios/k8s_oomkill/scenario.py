"""Root cause analysis of a Kubernetes OOMKill, in five subtasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.run.packs import PackFolder
from bench.scenario import Scenario, Subtask

from . import checks
from .baseline import baseline
from .grader import grade
from .schemas import AnomalyClassification, IncidentReport, LogTriage, RemediationPlan, RootCauseAnalysis

VARIANTS = ("paper", "medium", "large")
SECRETS = (
    "loads all 84,000 invoice records",
    "all invoice records in memory at once",
    "deployment regression",
    "kubectl rollout undo",
)


def no_remediation(outputs: Mapping[str, Any]) -> RemediationPlan | None:
    """The plan where none is needed, so that no model is asked for one."""
    if outputs["root_cause_analysis"].remediation_needed:
        return None
    return RemediationPlan(commands=[], rationale="The analysis asks for no remediation.")


def scenario(folder: PackFolder) -> Scenario:
    subtasks = (
        Subtask(
            name="log_triage",
            instructions=folder.prompt("log_triage"),
            reads=tuple(folder.documents()),
            output=LogTriage,
            checks=(checks.signals_have_their_times_from_the_documents, checks.workload_is_in_the_documents),
            sufficient=checks.enough_signals,
        ),
        Subtask(
            name="anomaly_classification",
            instructions=folder.prompt("anomaly_classification"),
            reads=("log_triage",),
            output=AnomalyClassification,
            checks=(checks.anomalies_are_distinct,),
            sufficient=checks.confident_anomalies,
        ),
        Subtask(
            name="root_cause_analysis",
            instructions=folder.prompt("root_cause_analysis"),
            reads=("log_triage", "anomaly_classification"),
            output=RootCauseAnalysis,
            checks=(checks.chain_is_a_chain,),
            sufficient=checks.confident_cause,
        ),
        Subtask(
            name="remediation_planning",
            instructions=folder.prompt("remediation_planning"),
            reads=("root_cause_analysis",),
            output=RemediationPlan,
            checks=(checks.commands_are_safe,),
            sufficient=checks.some_command,
            skip=no_remediation,
        ),
        Subtask(
            name="report_synthesis",
            instructions=folder.prompt("report_synthesis"),
            reads=("root_cause_analysis", "remediation_planning"),
            output=IncidentReport,
            checks=(checks.report_follows_the_analysis,),
        ),
    )
    return folder.scenario(subtasks, grade=grade, baseline=baseline, secrets=SECRETS)
