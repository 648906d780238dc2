"""Every system under test, what it needs and what it cannot express, as a Markdown section each."""

from __future__ import annotations

from bench.architectures.registry import SYSTEMS, System


def page() -> str:
    return "\n\n".join(_section(name, system) for name, system in SYSTEMS.items())


def _section(name: str, system: System) -> str:
    needs = f"It needs `pip install '.[{system.extra}]'`." if system.extra else "It needs no further package."
    return "\n".join((f"### `{name}`", "", needs, "", *(f"- {limit}" for limit in system.limits)))
