"""The entries of `bench serve`, and of the outside systems that it gives trials to."""

from bench.cli.command_part import CommandPart
from bench.run.architectures.part import ArchitecturePart
from bench.run.architectures.registry import IN_WORDS

COMMANDS = CommandPart("serve", "bench.cli.commands.serve:command")
SERVED = ArchitecturePart(
    "served",
    through=("bench.run.serve.trial_server",),
    acts_in="either",
    makes_own_calls=True,
    answer_formats=IN_WORDS,
    is_outside=True,
)
"""The entry of every outside system."""
