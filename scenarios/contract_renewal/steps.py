"""The procedure of a renewal: what is read, judged and done, in which order, from day -90 to day 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.environment import Call, Facts, Question, Step

from .limits import CLOSE, EXPIRY, OUTREACH, OUTREACH_DUE
from .right import SIGNALS

STOP = "kill_switch"


def steps(customer: str) -> tuple[Step, ...]:
    whom = {"customer": customer}
    closing = f"closing of {customer}"

    def reads(**tools: str) -> Callable[[Facts], Mapping[str, Call]]:
        calls = {name: Call(tool, whom) for name, tool in tools.items()}
        return lambda _: calls

    def signal(kind: str) -> Step:
        return Step(f"read_{kind}", ("open",), needed=goes_on, reads=reads(**{kind: f"read_{kind}"}))

    def note(facts: Facts) -> Sequence[Call]:
        return [Call("note_crm", {**whom, "text": f"Support: {facts.read['support']['severe_tickets_open']} severe tickets"})]

    def score(facts: Facts) -> Sequence[Call]:
        return [Call("score_churn", {**whom, "risk": facts.decided["risk"]["risk"]})]

    def draft(step: str) -> Callable[[Facts], Sequence[Call]]:
        return lambda facts: [Call("draft_offer", {**whom, **_terms(facts.decided[step])})]

    def withdraw(facts: Facts) -> Sequence[Call]:
        product = facts.read["standing_offer"]["product"]
        return [Call("withdraw_offer", {**whom, "product": product})] if facts.decided["after_change"]["action"] == "withdraw" else []

    def outreach(facts: Facts) -> Sequence[Call]:
        of = {**whom, "product": facts.read["standing_offer"]["product"]}
        return [Call("publish_offer", of), Call("send_outreach", of)] if of["product"] else []

    def close(facts: Facts) -> Sequence[Call]:
        decided = facts.decided["close"]
        if decided["decision"] in ("accept", "person"):
            return [Call("accept", {**whom, **_terms(facts.read["standing_offer"]), "merger": decided["merger"]})]
        return [Call("close", {**whom, "outcome": "churned"})] if decided["decision"] == "churned" else []

    def escalate(_: Facts, __: str) -> Sequence[Call]:
        return [Call("close", {**whom, "outcome": "escalated"})]

    def bill(facts: Facts) -> Sequence[Call]:
        return [Call("invoice", {**whom, "amount": facts.read["price"]["amount"]})]

    def take_back(facts: Facts) -> Sequence[Call]:
        offer, noted = facts.read["standing_offer"], f"note on {customer}" in facts.results
        undo = [Call("withdraw_offer", {**whom, "product": offer["product"]})] if offer["product"] and not offer["published"] else []
        return [*undo, *([Call("remove_note", whom)] if noted else [])]

    def goes_on(facts: Facts) -> bool:
        return STOP not in facts.events

    def withdrawn(facts: Facts) -> bool:
        return goes_on(facts) and facts.decided["after_change"]["action"] == "withdraw"

    def accepted(facts: Facts) -> bool:
        return goes_on(facts) and facts.results.get(closing, {}).get("outcome") in ("renewed", "restructured")

    def unanswered(facts: Facts) -> bool:
        return goes_on(facts) and facts.decided["close"]["decision"] == "expire"

    def manager(_: Facts, call: Call) -> Question:
        return Question("manager", closing, dict(call.arguments))

    return (
        Step("open", on="window_opened", effects=lambda _: [Call("open_renewal", whom)]),
        *(signal(kind) for kind in SIGNALS if kind != "support"),
        Step("read_support", ("open",), needed=goes_on, reads=reads(support="read_support"), effects=note),
        Step("risk", tuple(f"read_{kind}" for kind in SIGNALS), needed=goes_on, judgment="risk", effects=score),
        Step("offer", ("risk",), needed=goes_on, reads=reads(renewal="look_up"), judgment="offer", effects=draft("offer")),
        Step(
            "after_change",
            ("offer",),
            on="end_of_life",
            needed=goes_on,
            reads=reads(standing_offer="read_offer", catalogue="read_catalogue"),
            judgment="after_change",
            effects=withdraw,
        ),
        Step(
            "new_offer",
            ("after_change",),
            needed=withdrawn,
            reads=reads(renewal="look_up"),
            judgment="offer",
            effects=draft("new_offer"),
        ),
        Step(
            "outreach",
            ("offer",),
            starts=OUTREACH,
            until=OUTREACH_DUE,
            needed=goes_on,
            reads=reads(standing_offer="read_offer"),
            effects=outreach,
        ),
        Step(
            "close",
            ("outreach",),
            starts=CLOSE,
            needed=goes_on,
            reads=reads(standing_offer="read_offer", reply="read_reply"),
            judgment="close",
            effects=close,
            asks=manager,
            otherwise=escalate,
        ),
        Step("invoice", ("close",), needed=accepted, reads=reads(price="read_price"), effects=bill),
        Step("expire", ("close",), starts=EXPIRY, needed=unanswered, effects=lambda _: [Call("expire", whom)]),
        Step("stop", on=STOP, reads=reads(standing_offer="read_offer"), effects=take_back),
    )


def _terms(offer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: offer[name] for name in ("product", "discount", "term_months")}
