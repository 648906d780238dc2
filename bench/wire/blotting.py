"""Removal of an API key from the output of an endpoint, before any other code reads it. The key is found in plain form,
encoded, or masked as servers mask it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote

BLOT = "***"
"""The text that replaces a key."""
MIN_KEY_CHARS = 8
"""A shorter key is not looked for: it is no secret, such as a local server's, and can be a word. "none" would be blotted out
of answers."""
VISIBLE_CHARS = 4
"""Characters at the beginning or the end of a masked key, as in `sk-a****`, by which the key is recognized."""
MASK = r"(?:(?<![*•·…×])[*•·…×]++|(?<!\.)\.{3,}+|(?<!x)x{3,}+)"
"""A whole row of mask signs, so that a long row is matched only once."""
MASKS = (*"*•·…×", "...", "xxx")
SEARCH_STEP, MAX_FORM_CHARS = 2**14, 2**12
"""Characters that are searched in one step, and the further characters in which a form that begins in this step may end."""
VISIBLE_MIDDLE = r"[\w.+/=-]{0,64}"
"""Further characters of the key between the visible end and the mask."""


def blot(text: str, key: str) -> str:
    """Return the text with `BLOT` in place of each form of the key: plain, encoded or masked. A long text that may contain the
    key is searched in steps, because one long search would block all threads."""
    if len(key) < MIN_KEY_CHARS or not _may_contain(text.lower(), key):
        return text
    pieces, end = list[str](), 0
    for start in range(0, len(text), SEARCH_STEP):
        for form in _pattern_of(key).finditer(text, max(end, start), start + SEARCH_STEP + MAX_FORM_CHARS):
            if form.start() >= start + SEARCH_STEP:
                break
            pieces += text[end : form.start()], BLOT
            end = form.end()
    return "".join([*pieces, text[end:]])


def _may_contain(text: str, key: str) -> bool:
    """Return quickly whether a lower-case text may contain a form of the key, or a piece of the key and a mask."""
    has_visible_end = key[:VISIBLE_CHARS].lower() in text or key[-VISIBLE_CHARS:].lower() in text
    return (has_visible_end and any(mask in text for mask in MASKS)) or any(form in text for form in lower_forms(key))


@lru_cache(maxsize=256)
def lower_forms(key: str) -> tuple[str, ...]:
    """Return each distinct encoding of the key (JSON, URL, hexadecimal, base64 and others), in lower case."""
    return tuple({form.lower(): None for form in _encodings(key)})


@lru_cache(maxsize=256)
def _pattern_of(key: str) -> re.Pattern[str]:
    """Return the pattern that matches all forms of the key."""
    whole = sorted({re.escape(form) for form in _encodings(key)}, key=len, reverse=True)
    first, last = re.escape(key[:VISIBLE_CHARS]), re.escape(key[-VISIBLE_CHARS:])
    is_word = key.isalpha() and (key.islower() or key.isupper())  # "**Proactive" is no masked "noninteractive"
    masked = () if is_word else (rf"{first}{VISIBLE_MIDDLE}?{MASK}{VISIBLE_MIDDLE}", rf"{MASK}{VISIBLE_MIDDLE}?{last}")
    return re.compile("|".join([*whole, *masked]), re.IGNORECASE)


def _encodings(key: str) -> Iterator[str]:
    """Yield the encodings of the key: plain, reversed, its bytes in Latin-1, in JSON (once and twice), in a URL, in
    hexadecimal, and in base64. Base64 has three variants, by the position of the key in the encoded text."""
    raw = key.encode("utf-8", "surrogateescape")
    yield key
    yield key[::-1]
    yield raw.decode("latin-1")
    for ascii_only in (True, False):
        once = json.dumps(key, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once)[1:-1]
    yield quote(raw, safe="")
    yield raw.hex()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw).decode()
        inner = encoded[-(-before * 4 // 3) : (before + len(raw)) * 4 // 3]  # without the characters that its neighbours share
        yield inner
        yield inner.replace("+", "-").replace("/", "_")
