"""Lines chained by digest: each names all that stand before it, so that one that is damaged, lost or moved is found.

It finds accidents. Whoever wants to forge a file can chain it anew.
"""

from __future__ import annotations

import hashlib

DIGEST = 20
"""Hex digits of a link."""
SUFFIX = len(',"chain":""}') + DIGEST


class BrokenChain(ValueError):
    """A line does not follow the one before it."""


def sealed(line: bytes, before: str) -> tuple[bytes, str]:
    """A line of JSON, an object without its end of line, with its link; and the link, which the next line follows."""
    link = _digest(line, before)
    return line[:-1] + _seal(link) + b"\n", link


def unsealed(line: bytes, before: str) -> tuple[bytes, str]:
    """What was sealed, and its link. Raises Broken where the line is another, or follows another."""
    whole = line.rstrip(b"\n")
    content = whole[:-SUFFIX] + b"}"
    link = _digest(content, before)
    if not whole.endswith(_seal(link)):
        raise BrokenChain("does not follow the line before it")
    return content, link


def link_of(line: bytes) -> str:
    """The link that a line says it has, right or not."""
    return line.rstrip(b"\n")[-DIGEST - 2 : -2].decode("ascii", "replace")


def _seal(link: str) -> bytes:
    return b',"chain":"' + link.encode() + b'"}'


def _digest(line: bytes, before: str) -> str:
    return hashlib.blake2b(before.encode() + line, digest_size=DIGEST // 2).hexdigest()
