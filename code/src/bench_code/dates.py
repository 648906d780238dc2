"""Keeps `dateutil` from reading the clock when a text gives a whole date.

`dateutil` completes an incomplete date from the clock, and reads the clock for every text. Libraries that freeze the clock
parse a text to set it, so every test with a frozen clock would count as volatile.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from types import ModuleType
from typing import Any

PARSER = "dateutil.parser._parser"
"""The module that holds the class `parser`."""
DAYS = (datetime.datetime(2000, 1, 1), datetime.datetime(2031, 12, 28))
"""Two days that differ in year, month, day and day of the week."""


def without_clock(parser: ModuleType) -> None:
    """Make the module's parser read the clock only for a text whose date depends on the day."""
    parser.parser.parse = _parsing(parser.parser.parse)


def _parsing(original: Callable[..., Any]) -> Callable[..., Any]:
    def parse(self: Any, timestr: Any, default: Any = None, *arguments: Any, **named: Any) -> Any:
        if default is None and isinstance(timestr, str | bytes):
            first, second = (original(self, timestr, day, *arguments, **named) for day in DAYS)
            if first == second:
                return first
        return original(self, timestr, default, *arguments, **named)

    return parse
