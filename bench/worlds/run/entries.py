"""The entries of this wing that have no module beside their code: architectures, commands as agents, the environment kind and
the `scorecard` command."""

from bench.cli.command_part import CommandPart, ComparisonPart
from bench.run.architectures.part import ArchitecturePart
from bench.run.architectures.registry import IN_WORDS
from bench.run.packs.environments import EnvironmentPart

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
    *(ArchitecturePart(name, f"bench.worlds.run.patterns.{name}:{name}", acts_in="world", forms=True) for name in PATTERNS),
    *(
        ArchitecturePart(name, f"bench.worlds.run.patterns.{name}:{name}", acts_in="world", is_instrument=True)
        for name in ("every_judgment", "every_repair")
    ),
)
COMMAND = ArchitecturePart(
    "command",
    "bench.worlds.run.driver.architecture:of_command",
    through=("bench.worlds.run.driver.supervisor",),
    acts_in="world",
    makes_own_calls=True,
    answer_formats=IN_WORDS,
    is_outside=True,
)
"""The architecture part of every agent that is a command."""
ENVIRONMENTS = EnvironmentPart(
    "world",
    pack="bench.worlds.run.environment.in_packs",
    trial="bench.worlds.run.runtime.lives",
    simulated="bench.worlds.run.simulated.working",
    booked="bench.record.worlds.booked:unbooked",
    shown="bench.worlds.read.report.shown",
    checked="bench.cli.authoring.world_soundness",
    bank="bench.worlds.run.bank",
)
COMMANDS = CommandPart("scorecard", "bench.cli.commands.scorecard:scorecard")
COMPARISONS = ComparisonPart("scorecard", "bench.cli.commands.scorecard:compared", suffix=".json")
