"""ITBench's offline incidents: which entity of a cluster caused the alerts? See README.md."""

from __future__ import annotations

from bench.run.packs import PackFolder
from bench.scenario import Scenario, Subtask

from . import checks
from .baseline import baseline
from .generate import made_of
from .grader import grade
from .place import snapshots
from .schemas import Propagation, RootCause, Symptoms


def instances(folder: PackFolder) -> tuple[str, ...]:
    return tuple(snapshots(folder.path))


def scenario(folder: PackFolder, instance: str) -> Scenario:
    made = made_of(snapshots(folder.path)[instance])
    subtasks = (
        Subtask(
            name="symptoms",
            instructions=folder.prompt("symptoms"),
            reads=("alerts.txt",),
            output=Symptoms,
            checks=(checks.alert_is_listed, checks.affected_are_entities),
        ),
        Subtask(
            name="root_cause",
            instructions=folder.prompt("root_cause"),
            reads=("entities.txt", "changes.txt", "events.txt", "logs.txt", "symptoms"),
            output=RootCause,
            checks=(checks.causes_are_entities_that_are_shown,),
            checkpoint=True,
        ),
        Subtask(
            name="propagation",
            instructions=folder.prompt("propagation"),
            reads=("entities.txt", "symptoms", "root_cause"),
            output=Propagation,
            checks=(checks.links_begin_at_a_root_cause,),
        ),
    )
    return folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        answer=("root_cause", "propagation"),
        documents=made.documents,
        reference=made.reference,
        wrong=made.wrong,
        truth=made.truth,
        made_by=made_of,
    )
