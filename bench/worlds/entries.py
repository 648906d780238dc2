"""What this wing registers at the core."""

from bench.packs.environments import EnvironmentPart

ENVIRONMENTS = EnvironmentPart(
    "world",
    pack="bench.worlds.environment.in_packs",
    trial="bench.worlds.runtime.lives",
    simulated="bench.worlds.simulated.working",
)
