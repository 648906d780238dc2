"""Chain lines by digest: each line has a link, a digest of the line and of all lines before it, so that a damaged, lost or
moved line is found.

This finds accidents. A forger can chain a file anew.
"""

from __future__ import annotations

import hashlib

DIGEST = 20
"""The number of hex digits of a link."""
SEAL = b',"chain":"%b"}'
SUFFIX = len(SEAL % b"") + DIGEST


class BrokenChain(ValueError):
    """A line that does not follow the line before it."""


def seal(line: bytes, before: str) -> tuple[bytes, str]:
    """Return a line with its link, and the link, which the next line needs as `before`. The line is a JSON object without line
    end."""
    link = _digest(line, before)
    return line[:-1] + SEAL % link.encode() + b"\n", link


def unseal(line: bytes, before: str) -> tuple[bytes, str]:
    """Return the line without its link, and the link. Raises BrokenChain if the line was changed or does not follow the link
    `before`."""
    whole = line.rstrip(b"\n")
    content = whole[:-SUFFIX] + b"}"
    link = _digest(content, before)
    if not whole.endswith(SEAL % link.encode()):
        raise BrokenChain("does not follow the line before it")
    return content, link


def link_of(line: bytes) -> str:
    """Return the link that a line has, without checking it."""
    return line.rstrip(b"\n")[-DIGEST - 2 : -2].decode("ascii", "replace")


def _digest(line: bytes, before: str) -> str:
    return hashlib.blake2b(before.encode() + line, digest_size=DIGEST // 2).hexdigest()
