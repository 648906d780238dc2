"""The entry of the outside systems that `bench serve` gives trials to."""

from bench.run.architectures.part import ArchitecturePart
from bench.run.architectures.registry import IN_WORDS

SERVED = ArchitecturePart(
    "served",
    through=("bench.run.serve.trial_server",),
    acts_in="either",
    makes_own_calls=True,
    answer_formats=IN_WORDS,
    is_outside=True,
)
"""The entry of every outside system."""
