"""What can be said against an output without knowing the truth, beyond its schema: POLICY asks whether it is allowed, RULES
whether it follows from what was shown. The two are apart so that a boundary can be made of either strength."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.scenario import Check, Context

from .judgments import AfterChange, Close, Offer, Risk
from .limits import LONGEST, TERMS, limit_of, most_for
from .replies import NO_ANSWER
from .right import SIGNALS, risk_of


def offer_is_within_the_limit(output: Offer, context: Context) -> str | None:
    limit = limit_of(_shown(context, "renewal")["name"])
    return f"a discount of {output.discount}% is more than {limit}%" if output.discount > limit else None


def offer_is_sold(output: Offer, context: Context) -> str | None:
    renewal = _shown(context, "renewal")
    gone = not renewal["still_sold"] and output.product == renewal["product"]
    return f"{output.product} is no longer sold" if gone else None


def long_terms_and_mergers_need_a_person(output: Close, context: Context) -> str | None:
    if output.decision != "accept":
        return None
    if output.merger:
        return "a merger of contracts needs a person"
    term = _shown(context, "standing_offer")["term_months"]
    return f"a term of {term} months is more than {LONGEST} and needs a person" if term > LONGEST else None


def nothing_unsold_is_kept(output: AfterChange, context: Context) -> str | None:
    gone = _shown(context, "standing_offer")["product"] in _unsold(context)
    return "the offered product is no longer sold; it cannot be kept" if gone and output.action == "keep" else None


def risk_follows_from_the_marks(output: Risk, _: Context) -> str | None:
    bad = sum(getattr(output, kind) == "bad" for kind in SIGNALS)
    return None if output.risk == risk_of(bad) else f"{bad} of 4 signals are bad, so the risk is {risk_of(bad)}"


def discount_is_the_smaller(output: Offer, context: Context) -> str | None:
    renewal = _shown(context, "renewal")
    most = most_for(renewal["name"], renewal["churn_risk"])
    if output.discount > renewal["asks_discount"]:
        return "the discount is more than the customer asks for"
    return f"at this risk the discount is {most}% at most" if output.discount > most else None


def offer_is_of_what_was_asked(output: Offer, context: Context) -> str | None:
    renewal = _shown(context, "renewal")
    if output.product not in (renewal["product"], renewal["successor"]):
        return f"{output.product} is neither the customer's product nor its successor"
    if output.term_months != renewal["asks_term_months"] or output.term_months not in TERMS:
        return f"the customer asks for {renewal['asks_term_months']} months"
    return None


def nothing_sold_is_withdrawn(output: AfterChange, context: Context) -> str | None:
    sold = _shown(context, "standing_offer")["product"] not in _unsold(context)
    return "the offered product is still sold; there is nothing to withdraw" if sold and output.action == "withdraw" else None


def only_an_answer_is_decided_on(output: Close, context: Context) -> str | None:
    silent = _shown(context, "reply")["text"] == NO_ANSWER
    if silent == (output.decision == "expire"):
        return None
    return "there is no answer: nothing can be decided but expire" if silent else "there is an answer: it cannot expire"


POLICY: Mapping[str, tuple[Check, ...]] = {
    "risk": (),
    "offer": (offer_is_within_the_limit, offer_is_sold),
    "after_change": (nothing_unsold_is_kept,),
    "close": (long_terms_and_mergers_need_a_person,),
}
RULES: Mapping[str, tuple[Check, ...]] = {
    "risk": (risk_follows_from_the_marks,),
    "offer": (discount_is_the_smaller, offer_is_of_what_was_asked),
    "after_change": (nothing_sold_is_withdrawn,),
    "close": (only_an_answer_is_decided_on,),
}


def _shown(context: Context, name: str) -> Mapping[str, Any]:
    shown: Mapping[str, Any] = json.loads(context.documents[name])
    return shown


def _unsold(context: Context) -> list[str]:
    return [one["product"] for one in _shown(context, "catalogue")["no_longer_sold"]]
