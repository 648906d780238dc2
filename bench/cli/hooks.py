"""Calls of a pack's functions. A mistake in a function is reported in one line that names its place in the code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common.raised import place_of, type_and_message
from bench.scenario import Scenario


class HookFailed(Exception):
    """A function of a pack raised an error or returned a wrong type. The text is one line."""


@dataclass(frozen=True)
class Hooks:
    """The functions of one scenario."""

    scenario: Scenario
    folder: Path

    def call(self, label: str, function: Callable[..., Any], *values: object) -> Any:
        """Call a function of the pack, or a function that calls functions of the pack. Raises HookFailed."""
        try:
            return function(*values)
        except (Exception, SystemExit) as error:
            place = place_of(error, self.folder)
            raise HookFailed(f"{f'{place}: ' if place else ''}{label} raises {type_and_message(error)}") from error
