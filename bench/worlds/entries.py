"""What this wing registers at the core, beside its effects (`bench.worlds.effects`), metrics (`bench.worlds.analysis.metrics`)
and tables (`bench.worlds.report.tables`)."""

from bench.architectures.part import ArchitecturePart
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
)
ARCHITECTURES = (
    *(ArchitecturePart(name, f"bench.worlds.patterns.{name}:{name}", acts_in="world", forms=True) for name in PATTERNS),
    *(
        ArchitecturePart(name, f"bench.worlds.patterns.{name}:{name}", acts_in="world", is_instrument=True)
        for name in ("every_judgment", "every_repair")
    ),
)
ENVIRONMENTS = EnvironmentPart(
    "world",
    pack="bench.worlds.environment.in_packs",
    trial="bench.worlds.runtime.lives",
    simulated="bench.worlds.simulated.working",
    booked="bench.worlds.analysis.processes:unbooked",
    shown="bench.worlds.report.shown",
    checked="bench.worlds.cli.soundness",
)
