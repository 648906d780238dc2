"""The reference of a story, the wrong answers to it, and the truth that the grader reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from bench.scenario import Json, WrongAnswer

from .causes import CAUSES, SYMPTOMS, Remedy, strike
from .cluster import NUMBERS, SIZED
from .dice import Dice
from .documents import INCIDENT, VICTIM, events, log, rows
from .schemas import Cause
from .story import Change, Story

Outputs = dict[str, Json]
SOURCES = {
    "set_memory": "memory_mib_next",
    "set_cpu": "cpu_m_next",
    "grow_disk": "disk_gib_next",
    "set_pool": "pool_next",
    "rollback_image": "image_before",
}
"""Action -> the name under which the cluster shows a value that repairs."""


def truth(story: Story, seed: Sequence[str]) -> Json:
    """What the grader reads. Of the lines each is right."""
    incident = story.incident
    return {
        "service": incident.service,
        "cause": incident.cause,
        "metric": SYMPTOMS[incident.cause].metric,
        "change": _change(story, None),
        "severity": story.severity,
        "log": [line.dated for line in log(story, seed) if line.about == INCIDENT],
        "events": [line.timed for line in events(story, seed) if line.about == INCIDENT],
        "cluster": {
            "services": {name: asdict(service) for name, service in story.topology.services.items()},
            "spare": dict(story.spare),
        },
    }


def reference(story: Story, seed: Sequence[str]) -> Outputs:
    incident = story.incident
    named = {"service": incident.service}
    return {
        "log": {**named, "evidence": _evidence(story, seed, INCIDENT)},
        "metrics": _metric(story, seed, incident.service, SYMPTOMS[incident.cause].metric),
        "changes": {**named, "event": _event(story, seed, INCIDENT), "change": _change(story, None)},
        **_conclusion(incident.service, incident.cause, incident.broken.remedy),
        "report": {
            **named,
            "severity": story.severity,
            "summary": f"{story.entry} failed because of {incident.service}.",
        },
    }


def _conclusion(service: str, cause: Cause, remedy: Remedy, done_to: str = "") -> Outputs:
    """A cause at a service, and what is done to it or to another."""
    return {
        "cause": {"because": f"The signs at {service} speak for {cause}.", "service": service, "cause": cause},
        "remediation": _done(remedy, done_to or service),
    }


def _done(remedy: Remedy, name: str) -> Json:
    return {"action": remedy.action, "service": name, "source": SOURCES.get(remedy.action, "none"), "value": remedy.value}


def _grown(story: Story, name: str, remedy: Remedy) -> Remedy:
    """The remedy as one for a service that it was not meant for: a size is the next one, since its own may be had already."""
    if remedy.action not in SIZED:
        return remedy
    return Remedy(remedy.action, str(2 * story.topology.services[name].settings[NUMBERS[remedy.action]]))


def _evidence(story: Story, seed: Sequence[str], about: str) -> str:
    return next(line.dated for line in log(story, seed) if line.about == about)


def _event(story: Story, seed: Sequence[str], about: str) -> str:
    return next(line.timed for line in events(story, seed) if line.about == about)


def _reading(story: Story, seed: Sequence[str], service: str) -> Json:
    """The first metric that is shown of a service."""
    first = next(row.metric for row in rows(story, seed) if row.service == service)
    return _metric(story, seed, service, first)


def _metric(story: Story, seed: Sequence[str], service: str, metric: str) -> Json:
    shown = next(row for row in rows(story, seed) if (row.service, row.metric) == (service, metric))
    return {"row": shown.text, "service": service, "metric": metric}


def _change(story: Story, wanted: Change | None) -> str:
    """The id of a change, by default of the one that began the incident; "none" where none did."""
    for number, change in enumerate(story.changes, 1):
        if change is wanted or (wanted is None and change.undone is None):
            return f"c{number}"
    return "none"


def wrong(story: Story, seed: Sequence[str]) -> tuple[WrongAnswer, ...]:
    """Answers that reading too fast leads to. Each passes the verifier."""
    incident, remedy, dice = story.incident, story.incident.broken.remedy, Dice("wrong", *seed)
    alike = dice.pick(
        [cause for cause in CAUSES if cause not in (incident.cause, "bad_config")]
    )  # no document has a key for it
    other = strike(alike, story.topology.services[incident.service], dice)
    answers = {
        "blames_the_service_of_the_alert": (f"{story.entry} only depends on {incident.service}", _of_the_alert(story, seed)),
        "takes_an_old_incident_for_it": ("that one was over long before the alert", _of_an_old_one(story, seed)),
        "blames_a_harmless_change": ("that change struck nothing", _of_a_change(story, seed, dice)),
        "names_another_cause": (
            f"it is {incident.cause}",
            _conclusion(incident.service, alike, _grown(story, incident.service, other.remedy)),
        ),
        "restarts_it": ("a restart brings it back as it was", _with(story, Remedy("restart"))),
        "repairs_the_caller": (
            f"nothing is wrong with {story.victims[0]} itself",
            _conclusion(incident.service, incident.cause, _grown(story, story.victims[0], remedy), story.victims[0]),
        ),
        "does_too_little": ("the fault stays", _with(story, _too_little(story))),
    }
    if remedy.action in NUMBERS:
        answers["does_too_much"] = (
            "nodes, databases and probes have their limits",
            _with(story, Remedy(remedy.action, "999999")),
        )
    return tuple(WrongAnswer(name, why, outputs) for name, (why, outputs) in answers.items())


def _of_the_alert(story: Story, seed: Sequence[str]) -> Outputs:
    entry, incident = story.entry, story.incident
    said = [line.dated for line in log(story, seed) if line.about in (VICTIM, INCIDENT) and line.text.startswith(f"{entry} ")]
    return {
        "log": {"service": entry, "evidence": said[0]},
        "metrics": _reading(story, seed, entry),
        **_conclusion(entry, incident.cause, _grown(story, entry, incident.broken.remedy)),
    }


def _of_an_old_one(story: Story, seed: Sequence[str]) -> Outputs:
    old = story.old[0]
    named = {"service": old.service}
    return {
        "log": {**named, "evidence": _evidence(story, seed, old.service)},
        "metrics": _reading(story, seed, old.service),
        "changes": {**named, "event": _event(story, seed, old.service), "change": "none"},
        **_conclusion(old.service, old.cause, _grown(story, old.service, old.broken.remedy)),
    }


def _of_a_change(story: Story, seed: Sequence[str], dice: Dice) -> Outputs:
    change = dice.pick([change for change in story.changes if change.undone])
    assert change.undone is not None
    cause, remedy = change.undone
    named = {"service": story.incident.service, "event": _event(story, seed, INCIDENT)}
    return {
        "metrics": _reading(story, seed, change.where),
        "changes": {**named, "change": _change(story, change)},
        **_conclusion(change.where, cause, remedy),
    }


def _with(story: Story, remedy: Remedy) -> Outputs:
    """Another remedy at the right service, for the right cause."""
    return {"remediation": _conclusion(story.incident.service, story.incident.cause, remedy)["remediation"]}


def _too_little(story: Story) -> Remedy:
    """The right action with a value that is not enough; where it takes no value, replicas that help nothing."""
    service, action = story.incident.broken.service, story.incident.broken.remedy.action
    if action in NUMBERS:
        return Remedy(action, str(service.settings[NUMBERS[action]] + (action in SIZED)))
    if action == "rollback_image":
        return Remedy(action, service.image)
    return Remedy("scale_out", str(service.replicas + 1))
