"""The entry of the world as a kind of environment."""

from bench.run.packs.environments import EnvironmentPart

ENVIRONMENTS = EnvironmentPart(
    "world",
    pack="bench.worlds.run.environment.in_packs",
    trial="bench.worlds.run.runtime.lives",
    simulated="bench.worlds.run.simulated.working",
    bank="bench.worlds.run.simulated.bank",
)
