"""The texts that customers write, and their meanings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Meaning = Literal["signs", "merges", "haggles", "leaves", "silent"]
NO_ANSWER = "(no answer yet)"
WORDINGS: Mapping[Meaning, tuple[str, ...]] = {
    "signs": (
        "We will sign the renewal as offered.",
        "The offer is fine with us, please go ahead.",
        "Agreed. Send us the papers.",
        "We looked at another provider, and stay with you: the offer stands.",
    ),
    "merges": (
        "Agreed, provided that you merge it with the contract of our subsidiary.",
        "We will sign once this contract and that of our second site have become one.",
        "Fine with us. Please combine it with our other contract.",
    ),
    "haggles": (
        "We will sign at {asks}% and not otherwise.",
        "Make it {asks}%, and you have a deal; for less we do not sign.",
        "The offer is too dear. We stay if you give us {asks}%.",
    ),
    "leaves": (
        "Thank you for the fine offer. We have agreed with another provider.",
        "We will not sign: that site is being closed.",
        "Please let the contract end, we do not renew it.",
    ),
    "silent": (NO_ANSWER,),
}


def reply(meaning: Meaning, wording: int, asks: int) -> str:
    """Return the text of a customer with this meaning."""
    choice = WORDINGS[meaning]
    return choice[wording % len(choice)].format(asks=asks)


def meaning_of(text: str) -> Meaning:
    """Return the meaning of a text. A text that no customer writes has none."""
    plain = re.sub(r"\d+%", "{asks}%", text)
    return next((meaning for meaning, choice in WORDINGS.items() if plain in choice), "silent")
