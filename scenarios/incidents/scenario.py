"""Root cause analysis of generated incidents in a small cluster: what failed, why, and what repairs it.

log, metrics and changes are read side by side; from the three follow the cause, the remediation and the report.
"""

from __future__ import annotations

from bench.run.packs import PackFolder
from bench.scenario import Scenario, Subtask

from . import checks
from .baseline import baseline
from .generate import incident
from .grader import grade
from .schemas import ChangeFinding, LogFinding, MetricFinding, Remediation, Report, RootCause

DEVELOPMENT = "_dev"
VARIANTS = ("medium", "easy", "hard", "medium_dev", "easy_dev", "hard_dev")
"""The levels. Whoever tunes a prompt or a knob looks at a variant for development, whose instances no reference run takes."""
FRESH_INSTANCES, DEVELOPMENT_INSTANCES = 40, 20


def instances(folder: PackFolder) -> tuple[str, ...]:
    if folder.variant.endswith(DEVELOPMENT):
        return tuple(f"dev_{number:02}" for number in range(1, DEVELOPMENT_INSTANCES + 1))
    return tuple(f"case_{number:02}" for number in range(1, FRESH_INSTANCES + 1))


def scenario(folder: PackFolder, instance: str) -> Scenario:
    made = incident(folder.variant.removesuffix(DEVELOPMENT), instance)
    subtasks = (
        Subtask(
            name="log",
            instructions=folder.prompt("log"),
            reads=("app.log",),
            output=LogFinding,
            checks=(
                checks.service_is_in_the_cluster,
                checks.evidence_is_a_line_about_the_service,
            ),
        ),
        Subtask(
            name="metrics",
            instructions=folder.prompt("metrics"),
            reads=("metrics.txt",),
            output=MetricFinding,
            checks=(checks.service_is_in_the_cluster, checks.row_is_about_the_service, checks.row_has_the_metric),
        ),
        Subtask(
            name="changes",
            instructions=folder.prompt("changes"),
            reads=("events.txt", "changes.txt"),
            output=ChangeFinding,
            checks=(checks.service_is_in_the_cluster, checks.event_is_a_line_about_the_service, checks.change_is_listed),
        ),
        Subtask(
            name="cause",
            instructions=folder.prompt("cause"),
            reads=("log", "metrics", "changes"),
            output=RootCause,
            checks=(checks.service_is_in_the_cluster,),
            checkpoint=True,
        ),
        Subtask(
            name="remediation",
            instructions=folder.prompt("remediation"),
            reads=("cluster.txt", "changes.txt", "cause"),
            output=Remediation,
            checks=(checks.service_is_in_the_cluster, checks.value_fits_the_action),
        ),
        Subtask(
            name="report",
            instructions=folder.prompt("report"),
            reads=("cause", "remediation", "alert.txt"),
            output=Report,
            checks=(checks.service_is_in_the_cluster,),
        ),
    )
    return folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        documents=made.documents,
        reference=made.reference,
        wrong=made.wrong,
        truth=made.truth,
        made_by=incident,
    )
