"""The procedure of a conversation: what is read, judged, said and done, turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.worlds.run.environment import Call, Facts, ProcedureStep, Question

from .limits import CLOSE
from .policy import key_of
from .story import Case
from .wordings import NONE

SAGA = "exchange"
Calls = Sequence[Call]


@dataclass(frozen=True)
class Acts:
    """What is done in each step of one conversation: pure functions of the facts."""

    ticket: str

    def call(self, tool: str, **arguments: Any) -> Call:
        """Return a call about the ticket."""
        return Call(tool, {"ticket": self.ticket, **arguments})

    def reads(self, *names: str) -> Callable[[Facts], Mapping[str, Call]]:
        """Return what reads these documents."""
        calls = {name: self.call(f"read_{name}") for name in names}
        return lambda _: calls

    def open(self, _: Facts) -> Calls:
        return [self.call("open_ticket")]

    def answer_first(self, facts: Facts) -> Calls:
        says = "which_order" if facts.decided["hear"]["order"] == NONE else "confirm"
        return [self.call("reply", turn=1, says=says)]

    def note(self, facts: Facts) -> Calls:
        wanted = facts.decided["settle_request"]
        return [self.call("note_request", **{name: wanted[name] for name in ("intent", "order", "size")})]

    def before_deciding(self, facts: Facts) -> Mapping[str, Call]:
        wanted = facts.decided["settle_request"]
        stock = Call("read_stock", {"order": wanted["order"], "size": wanted["size"]})
        return {**self.reads("ticket", "orders")(facts), "stock": stock}

    def offer(self, facts: Facts) -> Calls:
        """An item is held back before it is promised."""
        decided, order = facts.decided["offer"], facts.read["ticket"]["order"]
        held = [Call("reserve", {"order": order, "size": decided["size"]})] if decided["action"] == "exchange" else []
        says = {"says": decided["action"], "amount": decided["amount"], "size": decided["size"]}
        return [*held, self.call("reply", turn=2, **says)]

    def refuse(self, facts: Facts, _: str) -> Calls:
        """What may not be offered is refused."""
        return [] if "reply 2" in facts.results else [self.call("reply", turn=2, says="refuse")]

    def settle(self, facts: Facts) -> Calls:
        decided, order = facts.decided["offer"], facts.read["ticket"]["order"]
        action, size = decided["action"], decided["size"]
        if facts.decided["settle"]["answer"] != "yes":
            return [Call("release", {"order": order})] if action == "exchange" else []
        match action:
            case "refund":
                return [Call("refund", {"order": order, "amount": decided["amount"]})]
            case "exchange":
                return [Call("ship", {"order": order, "size": size, "address": facts.read["account"]["address"]})]
            case "cancel":
                return [Call("cancel_order", {"order": order})]
        return []

    def ask(self, _: Facts, call: Call) -> Question:
        order = str(call.arguments["order"])
        return Question("lead", key_of(call.tool, order), {"order": order, "amount": call.arguments.get("amount", 0)})

    def readdress(self, facts: Facts) -> Calls:
        decided = facts.decided["second"]
        if decided["action"] != "change_address":
            return []
        return [Call("change_address", {"order": decided["order"], "address": decided["address"]})]

    def close(self, facts: Facts) -> Calls:
        return [self.call("close_ticket", **facts.decided["close"])]


def steps(case: Case) -> tuple[ProcedureStep, ...]:
    """Return the steps of a conversation. Each turn of the customer begins the next."""
    do = Acts(case.ticket)
    heard = do.reads("conversation", "orders")
    return (
        ProcedureStep("open", on="message", effects=do.open),
        ProcedureStep("hear", ("open",), reads=heard, judgment="request", effects=do.answer_first),
        ProcedureStep("settle_request", ("hear",), "turn_2", reads=heard, judgment="request", effects=do.note),
        ProcedureStep(
            "offer",
            ("settle_request",),
            saga=SAGA,
            reads=do.before_deciding,
            judgment="decision",
            effects=do.offer,
            otherwise=do.refuse,
        ),
        ProcedureStep(
            "second",
            ("open",),
            "second_request",
            reads=do.reads("aside", "orders"),
            judgment="second",
            effects=do.readdress,
        ),
        ProcedureStep(
            "settle",
            ("offer",),
            "turn_3",
            saga=SAGA,
            reads=do.reads("conversation", "account"),
            judgment="answer",
            effects=do.settle,
            asks=do.ask,
        ),
        ProcedureStep(
            "close",
            ("settle",),
            starts=case.moment(CLOSE),
            reads=do.reads("ticket", "conversation"),
            judgment="closing",
            effects=do.close,
        ),
    )
