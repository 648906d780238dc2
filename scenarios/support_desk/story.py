"""What is so of one conversation, drawn from its name alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from bench.common.seeding import seed_of
from bench.worlds.run.environment import Moment

from .limits import FREELY, RETURN_DAYS
from .wordings import NONE, Intent

Kind = Literal[
    "refund",
    "large",
    "doubtful",
    "too_late",
    "final_sale",
    "exchange",
    "moved",
    "sold_out",
    "changes_mind",
    "silent",
    "declines",
    "cancel",
    "shipped",
]
Action = Literal["refund", "exchange", "cancel", "refuse"]
T = TypeVar("T")

KINDS: tuple[tuple[Kind, ...], ...] = (
    ("refund",),
    ("large",),
    ("doubtful",),
    ("too_late", "final_sale"),
    ("exchange",),
    ("moved",),
    ("sold_out",),
    ("changes_mind",),
    ("silent", "declines"),
    ("cancel", "shipped"),
)
"""How a conversation goes; each ten instances have each once, and the one or the other of a pair."""
EXCHANGES = ("exchange", "moved", "sold_out", "changes_mind", "silent", "declines")
ITEMS = ("rain jacket", "hiking boots", "wool jumper", "trousers", "running shoes", "winter coat")
SIZES = ("S", "M", "L", "XL")
NAMES = ("A. Moreau", "B. Okafor", "C. Lindqvist", "D. Haddad", "E. Novak", "F. Tanaka", "G. Silva", "H. Brandt")
STREETS = ("Mill Lane", "Station Road", "Park Street", "Church Row", "Bridge Street", "Garden Way")
TOWNS = ("Ashford", "Bexley", "Corby", "Dover", "Evesham", "Frome")


class Dice:
    """Draws that are the same on every machine: each is a digest of a seed and its number."""

    def __init__(self, *seed: object):
        self._seed, self._thrown = seed, 0

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1."""
        self._thrown += 1
        return seed_of("support_desk", *self._seed, self._thrown) % bound

    def between(self, low: int, high: int) -> int:
        """Return a number from low to high, both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in another order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]


@dataclass(frozen=True)
class Order:
    """`days`: since its delivery, 0 where it has not come."""

    order: str
    item: str
    size: str
    price: int
    state: Literal["packing", "shipped", "delivered"]
    days: int
    final_sale: bool
    address: str


@dataclass(frozen=True)
class Case:
    """begins      the minute of day 0 at which its world begins
    orders      the first is what the customer writes about, the second that of the second request
    address     of the account; `moves_to`: where it changes to while an exchange is agreed on, "" where it stays
    first, wants   what the first message asks for, and what the customer wants in the end
    size        that is wanted, "none" but for exchanges; `left`: how many of it are in stock
    unclear     the first message does not name the order
    sound       what the lead thinks of the refund, where asked
    agrees      whether the customer takes a right offer; `silent`: never answers it
    aside       the address of a second request, "" where there is none
    repeats     the minute at which the first message comes once more, 0 where it does not
    pauses      minutes until the second and the third message
    wording     chooses among paraphrases
    """

    ticket: str
    kind: Kind
    begins: int
    name: str
    orders: tuple[Order, ...]
    address: str
    moves_to: str
    first: Intent
    wants: Intent
    size: str
    left: int
    unclear: bool
    sound: bool
    agrees: bool
    silent: bool
    aside: str
    repeats: int
    pauses: tuple[int, int]
    wording: int

    @property
    def about(self) -> Order:
        return self.orders[0]

    def moment(self, minutes: int) -> Moment:
        """Return the moment so many minutes after the beginning."""
        return Moment(0, self.begins).after(minutes=minutes)

    @property
    def action(self) -> Action:
        """What the terms allow for what the customer wants."""
        return action_of(self.wants, self.about.state, self.about.days, self.about.final_sale, self.left)

    @property
    def amount(self) -> int:
        return self.about.price if self.action == "refund" else 0

    @property
    def settled(self) -> bool:
        """Whether something is done in the end about what the customer wants."""
        return self.action != "refuse" and self.agrees and not (self.needs_lead and not self.sound)

    @property
    def needs_lead(self) -> bool:
        return self.action == "refund" and self.amount > FREELY

    @property
    def aside_is_due(self) -> bool:
        """Whether a second request comes that can be met."""
        return bool(self.aside) and self.orders[1].state == "packing"


def action_of(intent: str, state: str, days: int, final_sale: bool, left: int) -> Action:
    """Return what the terms allow: of an order in this state, with so many of the wanted size in stock."""
    if intent == "cancel":
        return "cancel" if state == "packing" else "refuse"
    if state != "delivered" or days > RETURN_DAYS or final_sale:
        return "refuse"
    return "exchange" if intent == "exchange" and left > 0 else "refund"


def kind_of(instance: str) -> Kind:
    """Return the kind of an instance, by its name: the tens are shuffled, each by itself."""
    word, _, number = instance.rpartition("_")
    ten, place = divmod(int(number) - 1, len(KINDS))
    kinds = Dice("kinds", word, ten).shuffled(KINDS)[place]
    return kinds[ten % len(kinds)]


def story(instance: str) -> Case:
    """Return everything about an instance, from its name alone."""
    kind, dice = kind_of(instance), Dice(instance)
    address, moved, aside = dice.shuffled([_address(dice) for _ in range(3)])
    exchange, cancels = kind in EXCHANGES, kind in ("cancel", "shipped")
    orders = _orders(kind, address, dice)
    size = dice.pick([size for size in SIZES if size != orders[0].size]) if exchange else NONE
    wants: Intent = "exchange" if exchange else "cancel" if cancels else "refund"
    return Case(
        ticket=f"T-{dice.between(10_000, 99_999)}",
        kind=kind,
        begins=60 * dice.between(8, 18) + 5 * dice.below(12),
        name=dice.pick(NAMES),
        orders=orders,
        address=address,
        moves_to=moved if kind == "moved" else "",
        first="refund" if kind == "changes_mind" else wants,
        wants=wants,
        size=size,
        left=0 if kind == "sold_out" else dice.between(1, 5),
        unclear=dice.below(100) < 40,
        sound=kind != "doubtful",
        agrees=kind not in ("silent", "declines"),
        silent=kind == "silent",
        aside=aside if dice.below(100) < 50 else "",
        repeats=dice.between(3, 8) if dice.below(100) < 50 else 0,
        pauses=(dice.between(2, 5), dice.between(3, 8)),
        wording=dice.below(1000),
    )


def _address(dice: Dice) -> str:
    return f"{dice.between(1, 90)} {dice.pick(STREETS)}, {dice.pick(TOWNS)}"


def _orders(kind: Kind, address: str, dice: Dice) -> tuple[Order, ...]:
    """Three orders. Days stand often just beside the bound."""
    numbers = dice.shuffled([f"R-{dice.between(10_000 * digit, 10_000 * digit + 9_999)}" for digit in range(1, 7)])
    items = dice.shuffled(ITEMS)
    dear = kind in ("large", "doubtful")
    price = dice.between(FREELY + 1, 400) if dear else dice.between(20, FREELY)
    days = dice.between(RETURN_DAYS + 1, RETURN_DAYS + 9) if kind == "too_late" else dice.between(1, RETURN_DAYS)
    state: Literal["packing", "shipped", "delivered"] = "delivered"
    if kind in ("cancel", "shipped"):
        state, days = ("packing" if kind == "cancel" else "shipped"), 0
    about = Order(numbers[0], items[0], dice.pick(SIZES), price, state, days, kind == "final_sale", address)
    coming: Literal["packing", "shipped"] = "packing" if dice.below(100) < 70 else "shipped"
    other = Order(numbers[1], items[1], dice.pick(SIZES), dice.between(20, 140), coming, 0, False, address)
    third = Order(
        numbers[2], items[2], dice.pick(SIZES), dice.between(20, 140), "delivered", dice.between(3, 60), False, address
    )
    return about, other, third
