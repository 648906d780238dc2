"""The procedure of a renewal: the order of reads, judgments and effects, from day -90 to day 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench.worlds.run.environment import Call, Facts, ProcedureStep, Question
from bench.worlds.run.environment.procedure import no_calls

from .limits import CLOSE, EXPIRY, OUTREACH, OUTREACH_DUE
from .right import SIGNALS

STOP = "kill_switch"
ACCEPTED = ("renewed", "restructured")
Calls = Sequence[Call]


@dataclass(frozen=True)
class Acts:
    """The actions of each step for one customer, as pure functions of the facts."""

    customer: str

    @property
    def closing(self) -> str:
        """Return the business key of the renewal's end."""
        return f"closing of {self.customer}"

    def call(self, tool: str, **arguments: Any) -> Call:
        return Call(tool, {"customer": self.customer, **arguments})

    def reads(self, **tools: str) -> Callable[[Facts], Mapping[str, Call]]:
        calls = {name: self.call(tool) for name, tool in tools.items()}
        return lambda _: calls

    def open(self, _: Facts) -> Calls:
        return [self.call("open_renewal")]

    def note(self, facts: Facts) -> Calls:
        return [self.call("note_crm", text=f"Support: {facts.read['support']['severe_tickets_open']} severe tickets are open")]

    def score(self, facts: Facts) -> Calls:
        return [self.call("score_churn", risk=facts.decided["risk"]["risk"])]

    def draft(self, step: str, facts: Facts) -> Calls:
        return [self.call("draft_offer", **_terms(facts.decided[step]))]

    def withdraw(self, facts: Facts) -> Calls:
        return [self._withdrawal(facts)] if withdrawn(facts) else []

    def outreach(self, facts: Facts) -> Calls:
        product = facts.read["standing_offer"]["product"]
        return [self.call(tool, product=product) for tool in ("publish_offer", "send_outreach")] if product else []

    def close(self, facts: Facts) -> Calls:
        """Return the calls that close the renewal. A call that may need a person is tried: the policy decides."""
        return self._by(facts.decided["close"], facts)

    def end(self, facts: Facts) -> Calls:
        """Return the calls of the last day: an offer without an answer expires."""
        return self._by(facts.decided["last_look"], facts) or [self.call("expire")]

    def ask(self, _: Facts, call: Call) -> Question:
        return Question("manager", self.closing, dict(call.arguments))

    def escalate(self, _: Facts, __: str) -> Calls:
        return [self.call("close", outcome="escalated")]

    def billable(self, facts: Facts) -> bool:
        accepted = facts.results.get(self.closing, {}).get("outcome") in ACCEPTED
        return goes_on(facts) and accepted and f"invoice to {self.customer}" not in facts.results

    def bill(self, facts: Facts) -> Calls:
        return [self.call("invoice", amount=facts.read["price"]["amount"])]

    def take_back(self, facts: Facts) -> Calls:
        """Return the undo calls for all effects that can be undone; a published offer cannot."""
        offer = facts.read["standing_offer"]
        calls = [self._withdrawal(facts)] if offer["product"] and not offer["published"] else []
        return [*calls, self.call("remove_note")] if f"note on {self.customer}" in facts.results else calls

    def _by(self, decided: Mapping[str, Any], facts: Facts) -> Calls:
        if decided["decision"] in ("accept", "person"):
            return [self.call("accept", **_terms(facts.read["standing_offer"]), merger=decided["merger"])]
        return [self.call("close", outcome="churned")] if decided["decision"] == "churned" else []

    def _withdrawal(self, facts: Facts) -> Call:
        return self.call("withdraw_offer", product=facts.read["standing_offer"]["product"])


def goes_on(facts: Facts) -> bool:
    return STOP not in facts.events


def withdrawn(facts: Facts) -> bool:
    return goes_on(facts) and bool(facts.decided["change"]["action"] == "withdraw")


def unanswered(facts: Facts) -> bool:
    return goes_on(facts) and bool(facts.decided["close"]["decision"] == "expire")


def steps(customer: str) -> tuple[ProcedureStep, ...]:
    do = Acts(customer)
    opened = ProcedureStep("open", on="window_opened", needed=goes_on, effects=do.open)
    return (opened, *_scoring(do), *_offering(do), *_closing(do))


def _scoring(do: Acts) -> tuple[ProcedureStep, ...]:
    """Return the steps of scoring. The signals are read in parallel; what support says is written to the CRM."""
    effects = {"support": do.note}
    signals = (
        ProcedureStep(
            kind, ("open",), needed=goes_on, reads=do.reads(**{kind: f"read_{kind}"}), effects=effects.get(kind, no_calls)
        )
        for kind in SIGNALS
    )
    return (*signals, ProcedureStep("risk", SIGNALS, needed=goes_on, judgment="risk", effects=do.score))


def _offering(do: Acts) -> tuple[ProcedureStep, ...]:
    """Return the steps of the offer. If the offered product reaches its end of life, a new offer is made. Only an offer that
    exists on day -30 is published."""
    renewal, standing = do.reads(renewal="look_up"), do.reads(standing_offer="read_offer")
    looked = do.reads(standing_offer="read_offer", catalogue="read_catalogue")
    draft, again = partial(do.draft, "offer"), partial(do.draft, "new_offer")
    return (
        ProcedureStep("offer", ("risk",), needed=goes_on, reads=renewal, judgment="offer", effects=draft),
        ProcedureStep(
            "change", ("offer",), "end_of_life", needed=goes_on, reads=looked, judgment="after_change", effects=do.withdraw
        ),
        ProcedureStep("new_offer", ("change",), needed=withdrawn, reads=renewal, judgment="offer", effects=again),
        ProcedureStep(
            "outreach", ("offer",), starts=OUTREACH, until=OUTREACH_DUE, needed=goes_on, reads=standing, effects=do.outreach
        ),
    )


def _closing(do: Acts) -> tuple[ProcedureStep, ...]:
    """Return the steps of the closing. A renewal without an answer on day -7 is checked again on day 0."""
    close = ProcedureStep(
        "close",
        ("outreach",),
        starts=CLOSE,
        needed=goes_on,
        reads=do.reads(standing_offer="read_offer", reply="read_reply"),
        judgment="close",
        effects=do.close,
        asks=do.ask,
        otherwise=do.escalate,
    )
    bill = ProcedureStep("invoice", ("close",), needed=do.billable, reads=do.reads(price="read_price"), effects=do.bill)
    return (
        close,
        bill,
        replace(close, name="last_look", after=("close",), starts=EXPIRY, needed=unanswered, effects=do.end),
        replace(bill, name="last_invoice", after=("last_look",)),
        ProcedureStep("stop", on=STOP, reads=do.reads(standing_offer="read_offer"), effects=do.take_back),
    )


def _terms(offer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: offer[name] for name in ("product", "discount", "term_months")}
