"""The procedure of an incident: what is read, judged and done, in which order, from the alert to the closing note."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.worlds.run.environment import Call, Facts, ProcedureStep, Question

from .case import Case
from .keys import UNDOES, field_of, key_of
from .limits import LAST_LOOK, LOOK
from .policy import LOUD

STOP = "change_freeze"
SAGA = "replace the node"
SIZES = {"scale": "replicas", "raise_limit": "connections"}
PAGES = {"page_owner": "owner", "page_provider": "provider"}
Calls = Sequence[Call]


@dataclass(frozen=True)
class Acts:
    """What is done in each step of one incident: pure functions of the facts."""

    incident: str

    def call(self, tool: str, **arguments: Any) -> Call:
        return Call(tool, {"incident": self.incident, **arguments})

    def reads(self, *names: str) -> Callable[[Facts], Mapping[str, Call]]:
        """Of what stands in the incident's record its number is asked for, of the rest nothing."""
        own = ("alert", "incident")
        calls = {name: self.call(f"read_{name}") if name in own else Call(f"read_{name}", {}) for name in names}
        return lambda _: calls

    def open(self, _: Facts) -> Calls:
        return [self.call("open_incident")]

    def grade(self, facts: Facts) -> Calls:
        return [self.call("set_severity", severity=facts.decided["triage"]["severity"])]

    def tell(self, facts: Facts) -> Calls:
        severity = facts.decided["triage"]["severity"]
        announced = [self.call("announce", status="investigating")] if severity in LOUD else []
        return [*announced, self.call("page", who="lead")] if severity == "critical" else announced

    def of_suspect(self, facts: Facts) -> Mapping[str, Call]:
        return {"log": Call("read_log", {"service": suspect(facts)}), "changes": Call("read_changes", {})}

    def find(self, facts: Facts) -> Calls:
        found = facts.decided["cause"]
        return [self.call("note_finding", service=suspect(facts), cause=found["cause"], node=found["node"])]

    def before_acting(self, facts: Facts) -> Mapping[str, Call]:
        deployment = Call("read_deployment", {"service": suspect(facts)})
        return {**self.reads("incident", "capacity")(facts), "deployment": deployment}

    def act(self, facts: Facts) -> Calls:
        chosen = facts.decided["act"]
        tool, target = chosen["action"], chosen["target"]
        if tool in PAGES:
            return [self.call("page", who=PAGES[tool])]
        if tool in ("wait", "reboot_node"):
            return []
        size = {SIZES[tool]: chosen["amount"]} if tool in SIZES else {}
        return [Call(tool, {"service": target, **size})]

    def on_node(self, tool: str) -> Callable[[Facts], Calls]:
        return lambda facts: [Call(tool, {"node": facts.decided["act"]["target"]})]

    def ask(self, _: Facts, call: Call) -> Question:
        target = str(call.arguments[field_of(call.tool)])
        return Question("lead", key_of(call.tool, target), {"tool": call.tool, "target": target})

    def hand_over(self, facts: Facts, _: str) -> Calls:
        """What cannot be done, or may not be, is the owner's."""
        return [] if "page of owner" in facts.results else [self.call("page", who="owner")]

    def wake(self, _: Facts) -> Calls:
        return [self.call("page", who="lead")]

    def close(self, step: str) -> Callable[[Facts], Calls]:
        return lambda facts: self._closing(facts, facts.decided[step])

    def _closing(self, facts: Facts, decided: Mapping[str, Any]) -> Calls:
        announced = "announcement of investigating" in facts.results and decided["outcome"] == "resolved"
        calls = [self.call("announce", status="resolved")] if announced else []
        told = any(f"page of {who}" in facts.results for who in ("lead", *PAGES.values()))
        if decided["outcome"] == "handed_over" and not told:
            calls = [self.call("page", who="owner")]
        return [*calls, self.call("close_incident", **decided)]

    def take_back(self, facts: Facts) -> Calls:
        """All that can be taken back, the last first."""
        standing = [one for one in facts.read["incident"]["done"] if one["tool"] in UNDOES]
        return [Call(UNDOES[one["tool"]], {field_of(one["tool"]): one["target"]}) for one in reversed(standing)]


def suspect(facts: Facts) -> str:
    return str(facts.decided["suspect"]["service"])


def goes_on(facts: Facts) -> bool:
    return STOP not in facts.events


def is_real(facts: Facts) -> bool:
    return goes_on(facts) and facts.decided.get("triage", {}).get("severity", "noise") != "noise"


def is_noise(facts: Facts) -> bool:
    return goes_on(facts) and facts.decided.get("triage", {}).get("severity") == "noise"


def found(facts: Facts) -> bool:
    return is_real(facts) and "cause" in facts.decided


def grows_worse(facts: Facts) -> bool:
    return is_real(facts) and "page of lead" not in facts.results


def on_a_node(facts: Facts) -> bool:
    return is_real(facts) and facts.decided.get("act", {}).get("action") == "reboot_node"


def has_recovered(facts: Facts) -> bool:
    return is_real(facts) and bool(facts.decided.get("look", {}).get("recovered"))


def fails_still(facts: Facts) -> bool:
    return is_real(facts) and not has_recovered(facts)


def steps(case: Case) -> tuple[ProcedureStep, ...]:
    do = Acts(case.incident)
    stop = ProcedureStep("stop", on=STOP, reads=do.reads("incident"), effects=do.take_back)
    return (*_telling(do), *_finding(do), *_mending(do), *_closing(do, case), stop)


def _telling(do: Acts) -> tuple[ProcedureStep, ...]:
    """Who has to know. What is noise is closed at once."""
    seen, record = do.reads("alert", "metrics"), do.reads("incident", "metrics")
    return (
        ProcedureStep("open", on="alert", needed=goes_on, effects=do.open),
        ProcedureStep("triage", ("open",), needed=goes_on, reads=seen, judgment="triage", effects=do.grade),
        ProcedureStep("tell", ("triage",), needed=is_real, effects=do.tell),
        ProcedureStep("dismiss", ("triage",), needed=is_noise, reads=record, judgment="closing", effects=do.close("dismiss")),
        ProcedureStep("wake", ("triage",), "escalated", needed=grows_worse, effects=do.wake),
    )


def _finding(do: Acts) -> tuple[ProcedureStep, ...]:
    return (
        ProcedureStep("suspect", ("tell",), needed=is_real, reads=do.reads("overview"), judgment="suspect"),
        ProcedureStep("cause", ("suspect",), needed=is_real, reads=do.of_suspect, judgment="cause", effects=do.find),
    )


def _mending(do: Acts) -> tuple[ProcedureStep, ...]:
    """A node is drained, started anew and taken in again, or it is left as it was."""
    act = ProcedureStep(
        "act",
        ("cause",),
        needed=found,
        reads=do.before_acting,
        judgment="action",
        effects=do.act,
        asks=do.ask,
        otherwise=do.hand_over,
    )
    drain = ProcedureStep(
        "drain", ("act",), saga=SAGA, needed=on_a_node, reads=do.reads("capacity"), effects=do.on_node("drain"), asks=do.ask
    )
    reboot = replace(drain, name="reboot", after=("drain",), effects=do.on_node("reboot"))
    undrain = replace(drain, name="undrain", after=("reboot",), effects=do.on_node("undrain"), otherwise=do.hand_over)
    return act, drain, reboot, undrain


def _closing(do: Acts, case: Case) -> tuple[ProcedureStep, ...]:
    """What has not recovered at the first look is looked at once more."""
    metrics, record = do.reads("metrics"), do.reads("incident", "metrics")
    look = ProcedureStep("look", ("undrain",), starts=case.moment(LOOK), needed=is_real, reads=metrics, judgment="recovered")
    close = ProcedureStep("close", ("look",), needed=has_recovered, reads=record, judgment="closing", effects=do.close("close"))
    last = case.moment(LAST_LOOK)
    return (
        look,
        close,
        replace(look, name="last_look", after=("close",), starts=last, needed=fails_still),
        replace(close, name="last_close", after=("last_look",), needed=fails_still, effects=do.close("last_close")),
    )
