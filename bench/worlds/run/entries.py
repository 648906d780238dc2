"""The entries of architectures for worlds, and of commands as agents."""

from bench.run.architectures.part import ArchitecturePart
from bench.run.architectures.registry import IN_WORDS

PATTERNS = (
    "bare_agent",
    "hierarchical_delegation",
    "scatter_gather_saga",
    "event_driven",
    "supervisor_gate",
    "state_machine",
    "human_in_the_loop",
    "plan_execute_evaluate",
    "composition",
    "plan_and_replan",
    "work_queue",
)
MODEL_LED = ("delegation_by_model",)
"""Patterns in which a model orchestrates."""
ARCHITECTURES = (
    *(
        ArchitecturePart(name, f"bench.worlds.run.patterns.{name}:{name}", acts_in="world", forms=True)
        for name in (*PATTERNS, *MODEL_LED)
    ),
    *(
        ArchitecturePart(name, f"bench.worlds.run.patterns.{name}:{name}", acts_in="world", is_instrument=True)
        for name in ("every_judgment", "every_repair")
    ),
)
COMMAND = ArchitecturePart(
    "command",
    "bench.worlds.run.driver.architecture:of_command",
    through=("bench.wire.supervisor",),
    acts_in="world",
    makes_own_calls=True,
    answer_formats=IN_WORDS,
    is_outside=True,
)
"""The architecture part of every agent that is a command."""
