"""Figures are made, and their files left empty: for tests of a report's words, of whose time rendering would be most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def leave_undrawn(replace: Callable[[Any, str, Any], None]) -> None:
    """`replace` is setattr, or one that takes back what it did."""
    from bench.read.render import drawing  # noqa: PLC0415  # here, as few tests need it

    replace(drawing, "_settle", lambda _: None)
    replace(drawing, "_png", lambda _: b"")
    replace(drawing, "_svg", lambda _: b"")
    replace(drawing, "_pdf", lambda _: b"")
