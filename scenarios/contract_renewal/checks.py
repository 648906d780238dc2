"""Checks of an output that need no truth, beyond its schema: whether it follows from its documents.

A boundary has three strengths. The schema is the output's type (`judgments.py`). The policy (`policy.py`) says whether what an
output would do is allowed. These checks are the business rules. Each can be left out by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.scenario import Check, Context

from .judgments import AfterChange, Close, Offer, Risk
from .limits import LONGEST, most_for
from .replies import NO_ANSWER
from .right import SIGNALS, risk_of


def risk_follows_from_the_marks(output: Risk, _: Context) -> str | None:
    on = sum(getattr(output, kind) == "on" for kind in SIGNALS)
    if (output.alarms_on, output.risk) == (on, risk_of(on)):
        return None
    return f"{on} of 4 alarms are on, so alarms_on is {on} and the risk is {risk_of(on)}"


def discount_is_the_smaller(output: Offer, context: Context) -> str | None:
    renewal = _shown(context, "renewal")
    most, asks = most_for(renewal["name"], renewal["churn_risk"]), renewal["asks_discount"]
    if output.discount == min(most, asks):
        return None
    return f"the discount must be the smaller of {asks}%, which is asked for, and {most}%, which is the limit"


def offer_is_of_what_was_asked(output: Offer, context: Context) -> str | None:
    renewal = _shown(context, "renewal")
    product, term = renewal["product"] if renewal["still_sold"] else renewal["successor"], renewal["asks_term_months"]
    if output.product != product:
        return f"the product must be {product}"
    return None if output.term_months == term else f"the customer asks for {term} months"


def action_follows_from_the_catalogue(output: AfterChange, context: Context) -> str | None:
    product = _shown(context, "standing_offer")["product"]
    gone = product in [one["product"] for one in _shown(context, "catalogue")["no_longer_sold"]]
    if gone == (output.action == "withdraw"):
        return None
    return f"{product} is no longer sold; it cannot be kept" if gone else f"{product} is still sold; do not withdraw it"


def long_terms_and_mergers_need_a_person(output: Close, context: Context) -> str | None:
    if output.decision != "accept":
        return None
    if output.merger:
        return "a merger of contracts needs a person"
    term = _shown(context, "standing_offer")["term_months"]
    return f"a term of {term} months is more than {LONGEST} and needs a person" if term > LONGEST else None


def only_an_answer_is_decided_on(output: Close, context: Context) -> str | None:
    silent = _shown(context, "reply")["text"] == NO_ANSWER
    if silent == (output.decision == "expire"):
        return None
    return "there is no answer: nothing can be decided but expire" if silent else "there is an answer: it cannot expire"


RULES: Mapping[str, tuple[Check, ...]] = {
    "risk": (risk_follows_from_the_marks,),
    "offer": (discount_is_the_smaller, offer_is_of_what_was_asked),
    "after_change": (action_follows_from_the_catalogue,),
    "close": (long_terms_and_mergers_need_a_person, only_an_answer_is_decided_on),
}


def _shown(context: Context, name: str) -> Mapping[str, Any]:
    shown: Mapping[str, Any] = json.loads(context.documents[name])
    return shown
