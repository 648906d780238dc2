"""Makes an instance: the conversation's story, the reference, wrong answers and the truth, from its name alone.

python -m scenarios.support_desk.generate case_07     shows one
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.scenario import Json, WrongAnswer

from .audit import SETTLING
from .customer import first_message, second_request, transitions
from .right import right
from .story import Case, story
from .tables import rows
from .wrong import wrong_answers


@dataclass(frozen=True)
class Made:
    """An instance, as it was made."""

    case: Case
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    truth: Json


def desk(instance: str) -> Made:
    """Make an instance of this name."""
    case = story(instance)
    reference = _reference(case)
    return Made(case, reference, wrong_answers(case, reference), _truth(case))


def _reference(case: Case) -> dict[str, Json]:
    """Each judgment in the state in which the right course meets it last; the second request as if it had come."""
    texts = [first_message(case), _answer(case, 1, "which_order" if case.unclear else "confirm")]
    last = _answer(case, 2, "refuse" if case.action == "refuse" else "right")
    purchases = [
        {**row, "order": row["number"], "days_since_delivery": row["days"], "final_sale": bool(row["final_sale"])}
        for row in rows(case)["purchase"]
    ]
    shown: dict[str, Any] = {
        "orders": {"orders": purchases},
        "stock": {"left": case.left},
        "aside": {"text": second_request(case) if case.aside else ""},
        "ticket": {
            "intent": case.wants,
            "order": case.about.order,
            "size": case.size,
            "offered": case.action,
            "done": [case.action] if case.settled else [],
        },
    }
    documents = {name: json.dumps(value) for name, value in shown.items()}
    early, late = _conversation(texts), _conversation([*texts, last])
    return {
        name: right(name, {**documents, "conversation": early if name == "request" else late})
        for name in ("request", "decision", "answer", "second", "closing")
    }


def _answer(case: Case, state: int, heard: str) -> str:
    return next(str(row["text"]) for row in transitions(case) if (row["state"], row["heard"]) == (state, heard))


def _conversation(texts: list[str]) -> str:
    return json.dumps({"lines": [{"who": "customer", "text": text} for text in texts]})


def _truth(case: Case) -> Json:
    """What the grader reads."""
    outcome = "declined"
    if case.settled:
        outcome = "resolved"
    elif case.action == "refuse" or case.agrees:
        outcome = "refused"
    elif case.silent:
        outcome = "unanswered"
    return {
        "request": [[case.wants, case.about.order, case.size]],
        "settled": [_settled(case)] if case.settled else [],
        "addresses": [[case.orders[1].order, case.aside]] if case.aside_is_due else [],
        "outcome": [outcome],
    }


def _settled(case: Case) -> list[Json]:
    """What is done for good, with all that it is given; an exchange goes to the address that the account has by then."""
    given: dict[str, Json] = {"order": case.about.order}
    if case.action == "refund":
        given["amount"] = case.amount
    if case.action == "exchange":
        given |= {"size": case.size, "address": case.moves_to or case.address}
    return [SETTLING[case.action], given]


def main(instance: str) -> None:
    """Print an instance."""
    made = desk(instance)
    print(json.dumps({"case": asdict(made.case), "reference": made.reference, "truth": made.truth}, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
