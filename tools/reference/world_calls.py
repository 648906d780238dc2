"""What an architecture can call on its workbench in a world, with signatures, as a Markdown table."""

from __future__ import annotations

from reference.workbench_calls import table

from bench.worlds.run.runtime.actions import WorldActions


def page() -> str:
    return table(WorldActions)
