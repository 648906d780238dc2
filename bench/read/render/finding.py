"""A finding of a report, in sentences that lead to a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SummaryFinding:
    """What a table shows, in one or more sentences.

    text    all sentences
    table   the name of the table
    first   the first sentence alone, for a terminal; "" if `text` has only one
    title   the report's title, if this finding is the report's first; else ""
    """

    text: str
    table: str
    first: str = ""
    title: str = ""
