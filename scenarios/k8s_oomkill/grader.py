"""Grades an answer against the truth. The only code that reads it; it runs no command, it only follows it on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from bench.scenario import Answer, Grade

from .kubectl import Command, parse
from .schemas import AnomalyClassification, IncidentReport, LogTriage, RemediationPlan, RootCauseAnalysis

FIELDS = ("component", "trigger", "mechanism")


class Evidence(BaseModel):
    """A sign that a triage should bring up: any signal from `source` that begins with one of `times`."""

    source: str
    times: tuple[str, ...]


class Truth(BaseModel):
    """`before` holds (earlier, later) pairs of events; `revisions` number -> version, the last one running."""

    model_config = ConfigDict(extra="forbid")

    component: str
    trigger: str
    mechanism: str
    causal_chain: tuple[str, ...]
    roots: frozenset[str]
    required: frozenset[str]
    before: tuple[tuple[str, str], ...]
    unrelated: frozenset[str]
    evidence: tuple[Evidence, ...]
    severities: frozenset[str]
    namespace: str
    deployment: str
    container: str
    images: frozenset[str]
    revisions: Mapping[int, str]
    good_version: str
    objects: frozenset[str]


def grade(answer: Answer, truth: Path) -> Grade:
    """Correct where the root cause, the chain's order, the remediation and the report all are. Raises OSError."""
    facts = Truth.model_validate_json((truth / "truth.json").read_text(encoding="utf-8"))
    cause: RootCauseAnalysis = answer["root_cause_analysis"]
    plan: RemediationPlan = answer["remediation_planning"]
    fault = chain_fault(cause.causal_chain, facts)
    remediation, said = judge_commands(plan.commands, facts)
    parts = {
        "signals": share_of_evidence(answer["log_triage"], facts),
        "anomalies": anomalies_f1(answer["anomaly_classification"], facts),
        **{field: float(getattr(cause, field) == getattr(facts, field)) for field in FIELDS},
        "causal_chain": chain_share(cause.causal_chain, facts.causal_chain),
        "remediation": remediation,
        "report": report_share(answer["report_synthesis"], facts),
    }
    faults = [f"{field} is wrong" for field in FIELDS if not parts[field]]
    faults += [f"causal_chain: {fault}"] if fault else []
    faults += [f"remediation: {said}"] if remediation < 1 else []
    faults += ["the report is wrong"] if parts["report"] < 1 else []
    return Grade(not faults, sum(parts.values()) / len(parts), parts, "; ".join(faults))


def share_of_evidence(triage: LogTriage, facts: Truth) -> float:
    found = [
        any(signal.source == sign.source and signal.time.startswith(sign.times) for signal in triage.signals)
        for sign in facts.evidence
    ]
    return sum(found) / len(found)


def anomalies_f1(classified: AnomalyClassification, facts: Truth) -> float:
    """Harmonic mean of precision and recall. An anomaly called background, or of low severity, counts as not raised."""
    raised = {a.anomaly for a in classified.anomalies if a.type != "background" and a.severity != "low"}
    expected = set(facts.causal_chain)
    return 2 * len(raised & expected) / (len(raised) + len(expected))


def chain_share(chain: Sequence[str], expected: Sequence[str]) -> float:
    """Length of the longest common subsequence, as a share of the longer chain."""
    row = [0] * (len(expected) + 1)
    for step in chain:
        above = row
        row = [0]
        for column, other in enumerate(expected):
            row.append(above[column] + 1 if step == other else max(above[column + 1], row[-1]))
    return row[-1] / max(len(chain), len(expected))


def chain_fault(chain: Sequence[str], facts: Truth) -> str | None:
    """Why the chain is not sound: a wrong first step, a step missing, one that had no part in it, or a wrong order."""
    if not chain or chain[0] not in facts.roots:
        return "does not begin with the root cause"
    if missing := facts.required.difference(chain):
        return f"lacks {min(missing)}"
    if foreign := facts.unrelated.intersection(chain):
        return f"{min(foreign)} had no part in it"
    place = {step: index for index, step in enumerate(chain)}
    for earlier, later in facts.before:
        if earlier in place and later in place and place[earlier] > place[later]:
            return f"{later} stands before {earlier}"
    return None


def judge_commands(texts: Sequence[str], facts: Truth) -> tuple[float, str]:
    """1 if safe and the good version runs in the end, 0.5 if only safe, 0 if not; and why."""
    commands: list[Command] = []
    for text in texts:
        command = parse(text)
        if isinstance(command, str):
            return 0.0, f"'{text}' {command}"
        if fault := _harm(command, facts):
            return 0.0, f"'{text}' {fault}"
        commands.append(command)
    try:
        version = version_after(commands, facts.revisions)
    except LookupError as error:
        return 0.0, str(error.args[0])
    if version != facts.good_version:
        return 0.5 if commands else 0.0, f"{version} runs in the end"
    return 1.0, ""


def _harm(command: Command, facts: Truth) -> str | None:
    if (name := command.unknown_name(facts.objects.__contains__)) is not None:
        return f"names '{name}', which does not exist"
    if not command.changes:
        return None
    if command.namespace != facts.namespace or set(command.objects) != {("deployment", facts.deployment)}:
        return "changes something else than the deployment at fault"
    if not all(container == facts.container and image in facts.images for container, image in command.images):
        return "sets an image that does not exist"
    return None


def version_after(commands: Sequence[Command], revisions: Mapping[int, str]) -> str:
    """The version that runs after the commands. Kubernetes keeps a version once, under its newest revision number.

    So a second plain undo brings back what the first one undid. Raises LookupError for a revision that is gone.
    """
    history = dict(revisions)
    for command in commands:
        version = history[max(history)]
        if command.verb == ("rollout", "undo"):
            wanted = int(command.flags.get("--to-revision", "0")) or sorted(history)[-2]
            if wanted not in history:
                raise LookupError(f"there is no revision {wanted}")
            version = history[wanted]
        elif command.verb == ("set", "image"):
            version = command.images[-1][1].rpartition(":")[2]
        newest = max(history) + (version != history[max(history)])
        history = {number: kept for number, kept in history.items() if kept != version} | {newest: version}
    return history[max(history)]


def report_share(report: IncidentReport, facts: Truth) -> float:
    right = (
        report.component == facts.component,
        report.trigger == facts.trigger,
        report.severity in facts.severities,
    )
    return sum(right) / len(right)
