"""Every system under test, what it needs and what it cannot express, as a Markdown section each."""

from __future__ import annotations

from bench.run.architectures.part import ArchitecturePart
from bench.run.architectures.registry import ARCHITECTURES


def page() -> str:
    return "\n\n".join(_section(part) for part in ARCHITECTURES if part.makes_own_calls and part.limits and not part.package)


def _section(system: ArchitecturePart) -> str:
    needs = f"It needs `pip install '.[{system.extra}]'`." if system.extra else "It needs no further package."
    return "\n".join((f"### `{system.name}`", "", needs, "", *(f"- {limit}" for limit in system.limits)))
