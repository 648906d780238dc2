"""The entries of this wing that have no module beside their code: architectures, commands as agents, the environment kind and
the `scorecard` command."""

from bench.architectures.part import ArchitecturePart
from bench.architectures.registry import IN_WORDS
from bench.cli.command_part import CommandPart, ComparisonPart
from bench.packs.environments import EnvironmentPart

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
ARCHITECTURES = (
    *(ArchitecturePart(name, f"bench.worlds.patterns.{name}:{name}", acts_in="world", forms=True) for name in PATTERNS),
    *(
        ArchitecturePart(name, f"bench.worlds.patterns.{name}:{name}", acts_in="world", is_instrument=True)
        for name in ("every_judgment", "every_repair")
    ),
)
COMMAND = ArchitecturePart(
    "command",
    "bench.worlds.driver.architecture:of_command",
    through=("bench.worlds.driver.supervisor",),
    acts_in="world",
    makes_own_calls=True,
    answer_formats=IN_WORDS,
    is_outside=True,
)
"""The architecture part of every agent that is a command."""
ENVIRONMENTS = EnvironmentPart(
    "world",
    pack="bench.worlds.environment.in_packs",
    trial="bench.worlds.runtime.lives",
    simulated="bench.worlds.simulated.working",
    booked="bench.worlds.analysis.processes:unbooked",
    shown="bench.worlds.report.shown",
    checked="bench.worlds.cli.soundness",
    bank="bench.worlds.bank",
)
COMMANDS = CommandPart("scorecard", "bench.worlds.cli.scorecard:scorecard")
COMPARISONS = ComparisonPart("scorecard", "bench.worlds.cli.scorecard:compared", suffix=".json")
