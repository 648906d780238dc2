"""The entries of `bench serve`, and of the outside systems that it gives trials to."""

from bench.architectures.part import ArchitecturePart
from bench.architectures.registry import IN_WORDS
from bench.cli.command_part import CommandPart

COMMANDS = CommandPart("serve", "bench.serve.cli:command")
SERVED = ArchitecturePart(
    "served",
    through=("bench.serve.trial_server",),
    acts_in="either",
    makes_own_calls=True,
    answer_formats=IN_WORDS,
    is_outside=True,
)
"""The entry of every outside system."""
