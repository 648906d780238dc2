"""The command `bench shrink`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.terminal import Terminal
from bench.experiment.files import write_whole
from bench.paths import PACKS, folder_of
from bench.runtime import loop
from bench.runtime.faults import Strike
from bench.studies.counterfactual.config_of import config_text
from bench.studies.counterfactual.rerun import original_of
from bench.studies.counterfactual.shrink import Shrunk
from bench.studies.counterfactual.shrink import shrink as shrink_trial

out = Terminal()


def shrink(
    run: Annotated[str, typer.Argument(help="A run's name under results/, or its folder.")],
    trial: Annotated[str, typer.Option(help="The trial's id, or its first characters; `bench trace RUN` shows them.")],
    damage: Annotated[
        str, typer.Option(help="The kind of damage that is looked into, such as doubled; every kind, if not given.")
    ] = "",
    to: Annotated[Path | None, typer.Option(help="The config to write; RUN-shrunk.toml, if not given.")] = None,
    scenarios: Annotated[list[Path], typer.Option(help="A folder of packs; may be given more than once.")] = PACKS,
) -> None:
    """Find the fewest faults that still break a trial, and write them as a config that anyone can run.

    The trial is run again on the same draws with fewer and fewer of the faults that struck it, until each that is left is needed. No
    model behind an endpoint is asked: a recorded model answers from the run.

    For example: bench shrink RUN --trial b89fe2eb
    """
    original = original_of(folder_of(run), trial, scenarios)
    found = loop.run_whole(shrink_trial(original, damage))
    for line in lines_of(found):
        out.print(line)
    if found.fewest:
        path = to or Path(f"{original.folder.name}-shrunk.toml")
        write_whole(path, config_text(found).encode())
        out.print(f"written: {path}; see it break: bench run {path}")


def lines_of(found: Shrunk) -> list[str]:
    """Say what was found, a fact a line."""
    record = found.original.record
    place = f"{record.scenario}/{record.instance}" if record.instance else record.scenario
    control = f"It ended {found.failure.words}. Without any fault it ends {found.control.words}."
    lines = [
        f"trial {record.id}: {record.architecture} on {place}, plan {record.plan}, repetition {record.repetition}",
        control,
    ]
    if not found.fewest:
        return [*lines, "It fails as it does without any fault: no fault is needed."]
    what = f"more damage than that ({', '.join(sorted(found.kinds))})" if found.kinds else "that end"
    each = "it cannot be left out" if len(found.fewest) == 1 else "none of them can be left out"
    needed = f"{len(found.fewest)} of the {len(found.struck)} faults that struck it suffice for {what}; {each}:"
    reruns = f"{found.reruns} reruns were needed to see that; no model was asked."
    unjudged = f"{found.unjudged} reruns asked for a reply that the run did not record; each counts as one that does not fail."
    return [
        *lines,
        needed,
        *(f"  {_told(found, *one)}" for one in found.fewest),
        reruns,
        *([unjudged] if found.unjudged else []),
    ]


def _told(found: Shrunk, number: int, strike: Strike) -> str:
    fault = found.original.spec.plan.faults[number]
    key = f", {strike.key}" if strike.key else ""
    return f"{fault.point} {fault.effect}: {strike.target}, {'try' if strike.key else 'attempt'} {strike.attempt}{key}"
