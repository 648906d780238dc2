"""`bench more merge`: parts of a run, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.cli.terminal import Terminal
from bench.common.errors import ResultsError
from bench.common.paths import RESULTS, folder_of, named
from bench.run.experiment.merging import merge_parts

out = Terminal()


def merge(
    parts: Annotated[list[str], typer.Argument(help="The parts' names under results/, their folders, or their archives.")],
    name: Annotated[str, typer.Option(help="The folder under results/ of the merged run.")],
) -> None:
    """Join parts of a run that were recorded separately.

    Parts are shards, or have different instances, plans or repetitions. The command does not change the parts.

    For example: bench more merge mine-shard-1-of-2 mine-shard-2-of-2 --name mine
    """
    folders, target = [folder_of(part) for part in parts], named(RESULTS, name)
    if len(folders) < 2:
        raise ResultsError(f"{parts[0]}: is only one part; name the other parts as well")
    recorded, expected = merge_parts(folders, target)
    missing = (
        "complete"
        if recorded == expected
        else f"{expected - recorded} are missing, which `bench run CONFIG --name {name}` runs"
    )
    out.print(f"{target}: {recorded} of {expected} trials, {missing}")
