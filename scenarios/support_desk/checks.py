"""What can be said against an output without knowing the truth, beyond its schema: whether it follows from what was shown.

A boundary has three strengths. The schema is the output's type (`judgments.py`). The policy (`policy.py`) says whether what an
output would do is allowed. These checks are the business rules. Each can be left out by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.scenario import Check, Context

from .judgments import Answered, AsideDecision, ClosingNote, Decision, Wanted
from .right import customers, last_of, order_in
from .wordings import NONE, SILENT


def quote_stands_in_the_conversation(output: Wanted, context: Context) -> str | None:
    texts = customers(_shown(context, "conversation"))
    return None if output.quote in texts else "the quote is no line of the customer"


def order_is_the_customers(output: Wanted, context: Context) -> str | None:
    if output.order == NONE:
        return None
    if order_in(_shown(context, "orders"), output.order) is None:
        return f"there is no order {output.order}"
    texts = customers(_shown(context, "conversation"))
    return None if any(output.order in text for text in texts) else f"the customer does not name {output.order}"


def only_an_exchange_has_a_size(output: Wanted | Decision, _: Context) -> str | None:
    exchanged = output.intent if isinstance(output, Wanted) else output.action
    return None if (exchanged == "exchange") == (output.size != NONE) else f'size is "{NONE}" for all but exchange'


def amount_is_the_price(output: Decision, context: Context) -> str | None:
    if output.action != "refund":
        return None if output.amount == 0 else f"the amount of {output.action} must be 0"
    order = order_in(_shown(context, "orders"), _shown(context, "ticket")["order"])
    price = order["price"] if order else 0
    return None if output.amount == price else f"the price of the order is {price}"


def quote_is_the_last_line(output: Answered, context: Context) -> str | None:
    return None if output.quote == last_of(_shown(context, "conversation")) else "the quote is not the customer's last line"


def silence_is_no_answer(output: Answered, context: Context) -> str | None:
    is_silent = last_of(_shown(context, "conversation")) == SILENT
    return None if is_silent == (output.answer == "silent") else "answer is silent where none came, and only then"


def order_and_address_were_written(output: AsideDecision, context: Context) -> str | None:
    text = _shown(context, "aside")["text"]
    strange = [word for word in (output.order, output.address) if word != NONE and word not in text]
    return f"the second request does not name {strange[0]}" if strange else None


def resolved_is_where_something_was_done(output: ClosingNote, context: Context) -> str | None:
    done = bool(set(_shown(context, "ticket")["done"]) & {"refund", "exchange", "cancel"})
    return None if done == (output.outcome == "resolved") else "outcome is resolved if something was done, and only then"


RULES: Mapping[str, tuple[Check, ...]] = {
    "request": (quote_stands_in_the_conversation, order_is_the_customers, only_an_exchange_has_a_size),
    "decision": (amount_is_the_price, only_an_exchange_has_a_size),
    "answer": (quote_is_the_last_line, silence_is_no_answer),
    "second": (order_and_address_were_written,),
    "closing": (resolved_is_where_something_was_done,),
}


def _shown(context: Context, name: str) -> Mapping[str, Any]:
    shown: Mapping[str, Any] = json.loads(context.documents[name])
    return shown
