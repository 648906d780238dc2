"""Digests that identify texts and files, equal in every process, and a table of texts by digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import IO

LONG_TEXT_CHARS, MAX_CACHED_DIGESTS = 2**14, 256
"""The digest of a text with more characters is not cached; and the number of cached digests. A call names its reply three
times, and architectures and repetitions send many of the same texts."""


def digest_of(text: str) -> str:
    """Return twenty hexadecimal digits that identify a text."""
    return (_digest if len(text) > LONG_TEXT_CHARS else cached_digest)(text)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


cached_digest = lru_cache(maxsize=MAX_CACHED_DIGESTS)(_digest)


def digest_of_file(file: IO[bytes]) -> str:
    """Return the SHA-256 of an open file, as `sha256sum` prints it."""
    digest = hashlib.sha256()
    for part in iter(lambda: file.read(2**20), b""):
        digest.update(part)
    return digest.hexdigest()


class Texts(dict[str, str]):
    """A table of texts by their digests."""

    def keep(self, text: str) -> str:
        """Store a text, and return its digest."""
        digest = digest_of(text)
        self[digest] = text
        return digest


def case_of(documents: Mapping[str, str]) -> str:
    """Return an identifier for a state of the world: the digest of the names and texts of the documents that describe the
    state; "" if there are no documents."""
    return digest_of("\0".join(f"{name}\0{documents[name]}" for name in sorted(documents))) if documents else ""
