"""The aspects in which two architectures of a run differ, by the structure that each declares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.read.analysis.frames import Run
from bench.record.described import UNTOLD, Structure

ASKING_ASPECT = "how the task is asked"
"""The only aspect that can change a pass without any rejection."""
ASPECTS = {
    "asks": ASKING_ASPECT,
    "verifies": "when an output is verified",
    "repeats": "what is asked again",
    "tells": "what the next prompt is told",
}
"""Field of an architecture's `Structure` -> the aspect in words."""


def aspects_between(run: Run, first: str, second: str) -> tuple[str, ...]:
    """Return the aspects in which two architectures of a run differ, in words; none if the structure of one is not known."""
    return tuple(aspect for aspect, value, other in aspects_of(run, first, second) if value != other)


def aspects_of(run: Run, first: str, second: str) -> Iterator[tuple[str, str, str]]:
    """Yield each aspect of two architectures: its name in words, its value in the first, and its value in the second."""
    first_structure, second_structure = structure_of(run, first), structure_of(run, second)
    if first_structure and second_structure:
        for aspect, words in ASPECTS.items():
            yield words, getattr(first_structure, aspect), getattr(second_structure, aspect)


def structure_of(run: Run, architecture: str) -> Structure | None:
    """Return the structure of an architecture. A variant that tells the next prompt nothing has that in its structure. None if
    the manifest does not describe the architecture."""
    base = run.config.base(architecture)
    description = run.manifest.descriptions.architectures.get(base)
    structure = description.structure if description else None
    variant = run.config.architecture.get(architecture)
    repair = (variant and variant.repair) or run.config.repair
    return replace(structure, tells=UNTOLD) if structure and repair == "none" else structure
