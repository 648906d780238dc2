"""Make an instance from its name alone: the customer's story, the reference, wrong answers and the truth.

python -m scenarios.contract_renewal.generate case_07     shows one
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from bench.scenario import Json, WrongAnswer

from .limits import price
from .replies import reply
from .right import right
from .story import SUCCESSORS, Case, story
from .wrong import wrong_answers


@dataclass(frozen=True)
class Made:
    case: Case
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    truth: Json


def renewal(instance: str) -> Made:
    case = story(instance)
    reference = _reference(case)
    return Made(case, reference, wrong_answers(case, reference), _truth(case))


def _reference(case: Case) -> dict[str, Json]:
    """Return each judgment's right output in the state in which the right course asks for it first."""
    terms = {"discount": case.discount, "term_months": case.asks_term}
    said = "haggles" if case.kind == "haggles" else case.answer
    shown: dict[str, Mapping[str, Json]] = {
        **case.signals,
        "renewal": {
            "name": case.name,
            "product": case.product,
            "still_sold": True,
            "asks_discount": case.asks_discount,
            "asks_term_months": case.asks_term,
            "churn_risk": case.risk,
        },
        "standing_offer": {"product": case.product, **terms},
        "catalogue": {"no_longer_sold": [{"product": case.retired, "successor": SUCCESSORS[case.retired]}]},
        "reply": {"text": reply(said, case.wording, case.asks_discount)},
    }
    documents = {name: json.dumps(one) for name, one in shown.items()}
    return {judgment: right(judgment, documents) for judgment in ("risk", "offer", "after_change", "close")}


def _truth(case: Case) -> Json:
    """Return the truth for the grader."""
    accepted = case.outcome in ("renewed", "restructured")
    return {
        "outcome": case.outcome,
        "halted": case.outcome == "halted",
        "risk": case.risk,
        "offer": [case.offered, case.discount, case.asks_term],
        "merger": case.kind == "merger",
        "invoices": [price(case.yearly, case.discount, case.asks_term)] if accepted else [],
    }


def main(instance: str) -> None:
    made = renewal(instance)
    print(json.dumps({"case": asdict(made.case), "reference": made.reference, "truth": made.truth}, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
