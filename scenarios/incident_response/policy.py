"""The policy's word on each effect: what the gate says of a call, and what an audit says of a deed in the table. Both are
one function of the call and of what was so when it was made (`seen`), which each deed keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.worlds.run.environment import Db, Moment, Policy, PolicyVerdict

from .health import state
from .keys import UNDOES, field_of
from .limits import BUSINESS_HOURS, MOST_CONNECTIONS, NOTED_REPLICAS, VERSION, most_replicas

Values = Mapping[str, Any]
ALLOWED = PolicyVerdict()
LOUD = ("critical", "major")
"""Severities at which something is announced."""
ONCE = {"open_incident": "open already", "page": "paged already", "close_incident": "closed already"}


def target_of(tool: str, given: Values) -> str:
    return str(given[field_of(tool)])


def seen_now(db: Db, tool: str, target: str, now: Moment) -> dict[str, Any]:
    """All that the policy looks at, as it is now."""
    seen: dict[str, Any] = {"before": db.value("SELECT count(*) FROM deed WHERE tool = ? AND target = ?", tool, target)}
    if tool in ("announce", "page", "close_incident"):
        seen |= {"severity": severity_now(db), "state": state(db, now), "escalated": db.value("SELECT escalated FROM behind")}
        seen["paged"] = db.value("SELECT count(*) FROM deed WHERE tool = 'page'")
    if tool in ("restart", "roll_back"):
        row = db.row("SELECT withdrawn, schema_changed, migration_running, stateful FROM service WHERE name = ?", target)
        approved = "SELECT approved FROM review WHERE tool = ? AND target = ? ORDER BY rowid DESC LIMIT 1"
        seen |= {**(dict(row) if row else {}), "approved": db.value(approved, tool, target)}
    if tool in ("scale", "raise_limit"):
        row = db.row("SELECT replicas, connections FROM service WHERE name = ?", target)
        seen |= dict(row) if row else {}
    if tool in ("drain", "reboot"):
        ready = db.value("SELECT count(*) FROM node WHERE NOT drained AND name != ?", target)
        drained = db.value("SELECT drained FROM node WHERE name = ?", target)
        seen |= {"left": ready, "needed": db.value("SELECT needed FROM incident"), "drained": drained}
    return seen


def severity_now(db: Db) -> str:
    return db.value("SELECT json_extract(given, '$.severity') FROM deed WHERE tool = 'set_severity' ORDER BY rowid DESC") or ""


def decide(db: Db, tool: str, arguments: Any, now: Moment) -> PolicyVerdict:
    """Of a call that is still to be made. Undos are always allowed."""
    if tool in UNDOES.values():
        return ALLOWED
    given = arguments.model_dump()
    return on(tool, given, seen_now(db, tool, target_of(tool, given), now), now.minute)


def on(tool: str, given: Values, seen: Values, minute: int) -> PolicyVerdict:
    """Of an effect, by what was so when it was made, at a minute of the day."""
    if tool in ONCE and seen["before"]:
        return PolicyVerdict("deny", ONCE[tool], f"{target_of(tool, given)}: {ONCE[tool]}")
    match tool:
        case "announce":
            return _announcement(given, seen)
        case "page":
            return _page(given, seen)
        case "close_incident":
            return _closing(given, seen)
        case "restart" | "roll_back":
            return _restarted(tool, seen, minute)
        case "drain":
            left, needed = seen["left"], seen["needed"]
            said = f"{left} nodes would be left, and {needed} are needed"
            return ALLOWED if left >= needed else PolicyVerdict("deny", "capacity", said)
        case "reboot":
            return ALLOWED if seen["drained"] else PolicyVerdict("deny", "not drained", "its requests would be dropped")
        case "scale":
            return _sized(given["replicas"], most_replicas(given["service"]), NOTED_REPLICAS, "replicas")
        case "raise_limit":
            return _sized(given["connections"], MOST_CONNECTIONS, MOST_CONNECTIONS, "connections")
    return ALLOWED


def _announcement(given: Values, seen: Values) -> PolicyVerdict:
    if seen["severity"] not in LOUD:
        return PolicyVerdict("deny", "too small", "only critical and major incidents are announced")
    if given["status"] == "resolved" and seen["state"] != "healthy":
        return PolicyVerdict("deny", "not recovered", "it is not resolved")
    return ALLOWED


def _page(given: Values, seen: Values) -> PolicyVerdict:
    if given["who"] != "lead" or seen["severity"] == "critical" or seen["escalated"]:
        return ALLOWED
    return PolicyVerdict("deny", "too small", "the lead is woken only for what is critical or grows worse")


def _closing(given: Values, seen: Values) -> PolicyVerdict:
    if given["outcome"] == "handed_over":
        return ALLOWED if seen["paged"] else PolicyVerdict("warn", "nobody paged", "nobody was told to take it over")
    return ALLOWED if seen["state"] == "healthy" else PolicyVerdict("deny", "not recovered", "requests still fail, or are slow")


def _restarted(tool: str, seen: Values, minute: int) -> PolicyVerdict:
    if seen.get("migration_running"):
        return PolicyVerdict("deny", "migration", "a migration is running")
    if tool == "roll_back" and seen.get("withdrawn"):
        return PolicyVerdict("deny", "withdrawn", "the version before was found bad and replaced")
    if not seen.get("approved"):
        if seen.get("stateful"):
            return PolicyVerdict("person", "stateful", "only with the lead's approval")
        if tool == "roll_back" and seen.get("schema_changed"):
            return PolicyVerdict("person", "schema", "only with the lead's approval")
    opens, closes = BUSINESS_HOURS
    warned = tool == "restart" and opens <= minute < closes
    return PolicyVerdict("warn", "business hours", "requests in flight are dropped") if warned else ALLOWED


def _sized(number: int, most: int, noted: int, what: str) -> PolicyVerdict:
    if number > most:
        return PolicyVerdict("deny", what, f"{number} {what} are more than {most}")
    return PolicyVerdict("warn", what, f"from {noted} {what} on it is noted") if number >= noted else ALLOWED


POLICY = Policy(VERSION, decide)
