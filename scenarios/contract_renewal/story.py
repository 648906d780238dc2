"""The facts of one customer: its data, its future answers, and the right end of its renewal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .dice import Dice
from .limits import LONGEST, NAMED, TERMS, most_for
from .replies import Meaning

Kind = Literal[
    "signs", "retired", "long", "merger", "long_refused", "merger_refused", "haggles", "leaves", "silent", "halted"
]  # fmt: skip
KINDS: tuple[tuple[Kind, ...], ...] = (
    ("signs",),
    ("signs",),
    ("retired",),
    ("long",),
    ("merger",),
    ("long_refused", "merger_refused"),
    ("haggles",),
    ("leaves",),
    ("silent",),
    ("halted",),
)
"""How a renewal goes; each ten instances have each once, and of a pair one."""
Outcome = Literal["renewed", "restructured", "churned", "escalated", "expired", "halted"]

ANSWERS: Mapping[Kind, Meaning] = {"merger": "merges", "merger_refused": "merges", "leaves": "leaves", "silent": "silent"}
"""What the customer answers to an offer that it settles for; it signs where nothing stands here."""
REFUSED = ("long_refused", "merger_refused", "haggles")
"""What a careful manager does not approve."""

FIRST = ("Alder", "Borea", "Castor", "Dunmore", "Elbe", "Fjord", "Garnet", "Hollin", "Isar", "Juniper", "Kestrel", "Lindau")
LAST = ("Foods", "Textiles", "Logistics", "Clinics", "Energy", "Schools", "Paper", "Printing", "Glass", "Hotels", "Tools")
PRODUCTS = ("Fibre 200", "Fibre 200 Plus", "Fibre 500", "Fibre 500 Plus", "Voice 20", "Voice 20 Pro", "Cloud S", "Cloud M")
SUCCESSORS = {
    "Fibre 200": "Fibre 500",
    "Fibre 200 Plus": "Fibre 500 Plus",
    "Fibre 500": "Fibre 900",
    "Fibre 500 Plus": "Fibre 900 Plus",
    "Voice 20": "Voice 50",
    "Voice 20 Pro": "Voice 50 Pro",
    "Cloud S": "Cloud S2",
    "Cloud M": "Cloud M2",
}
ASKED = (8, 14, 16, 18, 22, 24, 25, 28, 33, 38, 45, 60, 90)
GOOD = ("Our contact is content.", "They call it a fair partnership.", "No word of complaint in our last talk.")
BAD = ("Our contact sounded tired of us.", "They asked what others charge.", "They speak of a hard year.")


@dataclass(frozen=True)
class Case:
    """risk           what the four signals come to
    retired        the product whose end of life comes on day -47
    second_trigger the day on which the window is said to open once more
    switch         the day on which the kill switch is thrown; None where it is not
    discount       what is right to offer; settles_for: the least for which the customer signs
    """

    customer: str
    name: str
    kind: Kind
    product: str
    yearly: int
    asks_discount: int
    asks_term: int
    signals: Mapping[str, Mapping[str, object]]
    risk: str
    retired: str
    second_trigger: int
    switch: int | None
    settles_for: int
    reply_after: int
    wording: int

    @property
    def discount(self) -> int:
        return min(self.asks_discount, most_for(self.name, self.risk))

    @property
    def offered(self) -> str:
        """Return the product that is right to offer in the end."""
        return SUCCESSORS[self.product] if self.retired == self.product else self.product

    @property
    def answer(self) -> Meaning:
        return ANSWERS.get(self.kind, "signs")

    @property
    def outcome(self) -> Outcome:
        match self.kind:
            case "halted":
                return "halted"
            case "leaves":
                return "churned"
            case "silent":
                return "expired"
            case "long_refused" | "merger_refused" | "haggles":
                return "escalated"
        return "restructured" if self.kind == "merger" or self.offered != self.product else "renewed"


def kind_of(instance: str) -> Kind:
    """Return the kind of an instance, by its name. Each ten of instances is shuffled separately."""
    word, _, number = instance.rpartition("_")
    ten, place = divmod(int(number) - 1, len(KINDS))
    dice = Dice("kinds", word, ten)
    return dice.pick(dice.shuffled(KINDS)[place])


def story(instance: str) -> Case:
    """Return all facts of an instance, made from its name alone."""
    kind, dice = kind_of(instance), Dice(instance)
    named = kind != "haggles" and dice.chance(15)
    name = dice.pick(tuple(NAMED)) if named else f"{dice.pick(FIRST)} {dice.pick(LAST)}"
    product = dice.pick(PRODUCTS)
    risk, signals = _signals(dice)
    most = most_for(name, risk)
    asks = dice.pick([one for one in ASKED if kind != "haggles" or one > most])
    term = dice.pick([one for one in TERMS if (one > LONGEST) == (kind in ("long", "long_refused"))])
    return Case(
        customer=f"C-{dice.between(1000, 9999)}",
        name=name,
        kind=kind,
        product=product,
        yearly=1200 * dice.between(4, 60),
        asks_discount=asks,
        asks_term=term,
        signals=signals,
        risk=risk,
        retired=product if kind == "retired" or (kind != "signs" and dice.chance(30)) else _neighbour(product, dice),
        second_trigger=dice.between(-89, -50),
        switch=dice.pick((dice.between(-80, -48), dice.between(-46, -31), dice.between(-29, -8))) if kind == "halted" else None,
        settles_for=asks if kind == "haggles" else max(0, min(asks, most) - dice.between(0, 4)),
        reply_after=dice.between(2, 18),
        wording=dice.below(1000),
    )


def _neighbour(product: str, dice: Dice) -> str:
    """Return another product, in half of the draws one with a similar name."""
    others = [one for one in PRODUCTS if one != product]
    return dice.pick([one for one in others if one[:5] == product[:5]] if dice.chance(50) else others)


def _signals(dice: Dice) -> tuple[str, dict[str, dict[str, object]]]:
    """Return the churn risk, and four signals with the number of alarms that this risk requires. Remarks are arbitrary."""
    risk, bad = dice.pick([("low", 0), ("low", 1), ("medium", 2), ("medium", 2), ("high", 3), ("high", 4)])
    struck = dice.shuffled(("usage", "network", "billing", "support"))[:bad]
    seats = 2 * dice.between(20, 200)
    used = dice.between(seats // 5, seats // 2 - 2) if "usage" in struck else dice.between(seats // 2 + 2, seats)
    facts: dict[str, dict[str, object]] = {
        "usage": {"seats": seats, "seats_used": used},
        "network": {"outage_minutes": dice.between(130, 700) if "network" in struck else dice.between(0, 110)},
        "billing": {"days_overdue": dice.between(33, 120) if "billing" in struck else dice.between(0, 28)},
        "support": {"severe_tickets_open": dice.between(1, 4) if "support" in struck else 0, "tickets_closed": dice.below(30)},
    }
    alarms = {kind: "on" if kind in struck else "off" for kind in facts}
    remarks = {kind: dice.pick(GOOD if dice.chance(50) else BAD) for kind in facts}
    return risk, {kind: {**fact, "alarm": alarms[kind], "remark": remarks[kind]} for kind, fact in facts.items()}
