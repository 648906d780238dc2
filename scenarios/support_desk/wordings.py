"""What customers write, and what they mean by it: each meaning has several wordings, and no text has two meanings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

Intent = Literal["refund", "exchange", "cancel"]
Answer = Literal["yes", "no", "silent"]
INTENTS: tuple[Intent, ...] = get_args(Intent)

NONE = "none"
SILENT = "(no answer)"
UNCLEAR = "what I ordered"
"""In the place of an order's number, where a customer does not give it."""

WISHES: Mapping[Intent, tuple[str, ...]] = {
    "refund": (
        "I want my money back for {what}.",
        "I do not want to keep {what}, so please return the price to me.",
        "I am sending back {what}, which is not what I expected, and would like to be repaid.",
    ),
    "exchange": (
        "Please exchange {what}: {worn} does not fit, and I need {size}.",
        "I took {worn} for {what} and should have taken {size}. Please send that.",
        "Could you swap {what}, which came in {worn}, for the same in {size}?",
    ),
    "cancel": (
        "Please cancel {what}.",
        "I do not need {what} any more, so please do not send it.",
        "I placed {what} by mistake and want it stopped.",
    ),
}
OPENINGS: Mapping[str, tuple[str, ...]] = {
    "confirms": ("Yes, that is right. ", "Correct. "),
    "gives": ("Sorry, I left that out. ", "Of course. "),
    "repeats": ("As I wrote before: ", "I have told you already. "),
    "complains": ("You did not even ask which order it is. ", "You cannot know that yet. "),
    "changes": ("On second thought, something else. ", "I have changed my mind. "),
}
"""How a customer begins the second message."""
ANSWERS: Mapping[str, tuple[str, ...]] = {
    "accepts": ("Why not. Please do that.", "I have nothing against it.", "Agreed. Go ahead, please."),
    "declines": ("Thank you, but I have decided to keep it.", "Please leave it as it is."),
    "objects": ("No, that is not what I asked for.", "I do not want that."),
    "resigns": ("That is a pity, but I understand.", "Then there is nothing to be done."),
}
ASIDES = (
    "One more thing: please send order {order} to {address}.",
    "By the way, order {order} should go to {address}.",
    "I have another request. The address for order {order} is now {address}.",
)


@dataclass(frozen=True)
class Wish:
    """What a message asks for; the order is "" where it names none, and so is the size."""

    intent: Intent
    order: str = ""
    size: str = ""


def wish(intent: Intent, order: str, worn: str, size: str, wording: int) -> str:
    """Word a wish for an order, "" to name none, that came in the size `worn`."""
    return picked(WISHES[intent], wording).format(what=f"order {order}" if order else UNCLEAR, worn=worn, size=size)


def picked(words: Sequence[str], wording: int) -> str:
    """Return one of the wordings."""
    return words[wording % len(words)]


def wish_in(text: str) -> Wish | None:
    """Return what a message asks for; None where it asks for nothing."""
    for intent in INTENTS:
        for words in WISHES[intent]:
            if match := _pattern(words).search(text):
                fields = match.groupdict()
                return Wish(intent, fields["what"].removeprefix("order ").replace(UNCLEAR, ""), fields.get("size", ""))
    return None


def answer_in(text: str) -> Answer:
    """Return what a customer says to an offer."""
    if text == SILENT:
        return "silent"
    return "yes" if text in ANSWERS["accepts"] else "no"


def aside_in(text: str) -> tuple[str, str]:
    """Return the order and the address of a second request; twice "none" where there is none."""
    matches = (_pattern(words).search(text) for words in ASIDES)
    fields = next((match.groupdict() for match in matches if match), {"order": NONE, "address": NONE})
    return fields["order"], fields["address"]


@cache
def _pattern(words: str) -> re.Pattern[str]:
    kinds = {"what": rf"order R-\d+|{UNCLEAR}", "size": "[A-Z]+", "worn": "[A-Z]+", "order": r"R-\d+", "address": r"[\w, ]+"}
    text = re.escape(words)
    for name, kind in kinds.items():
        text = text.replace(rf"\{{{name}\}}", f"(?P<{name}>{kind})")
    return re.compile(text)
