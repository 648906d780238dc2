"""The key blotted out of what an endpoint says, before anything else reads that: whole, encoded, or masked as servers do."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote

BLOT = "***"
SHORTEST = 8
"""Characters of a key that is looked for. A shorter one, as a local server is given, is no secret and might be a word: "none"
would be blotted out of answers."""
SHOWN = 4
"""Characters at a masked key's beginning, or at its end, by which it is known."""
MASK = r"(?:(?<![*•·…×])[*•·…×]++|(?<!\.)\.{3,}+|(?<!x)x{3,}+)"
"""All of a row of such signs, so that a long one is looked at once."""
MASKS = (*"*•·…×", "...", "xxx")
STEP, LONGEST_FORM = 2**14, 2**12
"""Characters that are searched in one go, and so many more for a form that begins among them."""
SEEN = r"[\w.+/=-]{0,64}"
"""What a mask leaves to be seen, besides."""


def blotted(text: str, key: str) -> str:
    """The text without the key. A text in which it might stand is searched step by step: in one go, the search of a long one
    would hold up all threads."""
    if len(key) < SHORTEST or not _may_hold(text.lower(), key):
        return text
    pieces, at = list[str](), 0
    for begin in range(0, len(text), STEP):
        for form in _forms(key).finditer(text, max(at, begin), begin + STEP + LONGEST_FORM):
            if form.start() >= begin + STEP:
                break
            pieces += text[at : form.start()], BLOT
            at = form.end()
    return "".join([*pieces, text[at:]])


def _may_hold(text: str, key: str) -> bool:
    """Whether a text in small letters has a form of the key, or a piece of it and a mask; a quick look."""
    shown = key[:SHOWN].lower() in text or key[-SHOWN:].lower() in text
    return (shown and any(mask in text for mask in MASKS)) or any(form in text for form in _written_small(key))


@lru_cache(maxsize=16)
def _written_small(key: str) -> tuple[str, ...]:
    return tuple(form.lower() for form in _written(key))


@lru_cache(maxsize=16)
def _forms(key: str) -> re.Pattern[str]:
    whole = sorted({re.escape(form) for form in _written(key)}, key=len, reverse=True)
    first, last = re.escape(key[:SHOWN]), re.escape(key[-SHOWN:])
    masked = rf"{first}{SEEN}?{MASK}{SEEN}", rf"{MASK}{SEEN}?{last}"
    return re.compile("|".join([*whole, *masked]), re.IGNORECASE)


def _written(key: str) -> Iterator[str]:
    """The key in the alphabets of the web. In base64 it looks otherwise by its place in what was encoded, one of three."""
    yield key
    yield key[::-1]
    yield quote(key, safe="")
    yield key.encode().hex()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + key.encode()).decode()
        inner = encoded[-(-before * 4 // 3) : (before + len(key)) * 4 // 3]  # without what its neighbours have a part in
        yield inner
        yield inner.replace("+", "-").replace("/", "_")
