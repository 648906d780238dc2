"""The pack's verifier: checks of an output that need no truth."""

from __future__ import annotations

from collections.abc import Iterable

from bench.scenario import Context

from .entities import is_shown, parsed
from .schemas import Propagation, RootCause, Symptoms


def _objection(names: Iterable[str]) -> str | None:
    wrong = next((name for name in names if parsed(name) is None), None)
    return None if wrong is None else f"'{wrong[:60]}' is no entity; write namespace/Kind/name, as shop/Deployment/cart"


def alert_is_listed(output: Symptoms, context: Context) -> str | None:
    wanted = " ".join(output.first_alert.split())
    lines = [" ".join(line.split()) for line in context.documents["alerts.txt"].splitlines()]
    if len(wanted) >= len("17:25:19") and any(wanted in line for line in lines):
        return None
    return f"'{wanted[:60]}' is no line of alerts.txt; copy one as it stands there"


def affected_are_entities(output: Symptoms, _: Context) -> str | None:
    return _objection(output.affected)


def causes_are_entities_that_are_shown(output: RootCause, context: Context) -> str | None:
    if objection := _objection(output.entities):
        return objection
    entities = [entity for name in output.entities if (entity := parsed(name))]
    hidden = next((entity for entity in entities if not is_shown(entity, context.documents)), None)
    return f"no document names '{hidden.name}'; name an entity that stands there" if hidden else None


def links_begin_at_a_root_cause(output: Propagation, context: Context) -> str | None:
    if objection := _objection(name for link in output.links for name in (link.source, link.target)):
        return objection
    causes = context.outputs["root_cause"].entities
    if not output.links or any(link.source in causes for link in output.links):
        return None
    return f"no link begins at a root cause ({', '.join(causes)}); begin there"
