"""Which volume fills up first? A small pack to begin from: two subtasks, one check of each kind, a grader."""

from __future__ import annotations

from pydantic import Field

from bench.run.packs import PackFolder
from bench.scenario import Context, Output, Scenario, Subtask

from .baseline import baseline
from .grader import grade

MIN_CONFIDENCE = 0.6


class Reading(Output):
    volume: str
    free_gb: float = Field(ge=0)
    growth_gb_per_day: float = Field(ge=0)


class Readings(Output):
    readings: list[Reading]


class Decision(Output):
    volume: str = Field(description="the volume that is full first")
    days_left: int = Field(ge=0, description="whole days until it is full")
    confidence: float = Field(ge=0, le=1)


def each_volume_exists(output: Readings, context: Context) -> str | None:
    """Return why an output is rejected, in one line that a model may be shown; None if it passes.

    A check can read all documents, and never the truth.
    """
    unknown = [reading.volume for reading in output.readings if reading.volume not in context.documents["volumes.txt"]]
    return f"volumes.txt has no volume '{unknown[0]}'" if unknown else None


def volume_was_read(output: Decision, context: Context) -> str | None:
    """Return why a decision is rejected, or None. `context.outputs` has the outputs that the subtask reads."""
    volumes = [reading.volume for reading in context.outputs["measure"].readings]
    return None if output.volume in volumes else f"'{output.volume}' is not among the readings: {', '.join(volumes)}"


def unsure(output: Decision) -> str | None:
    """Return why a valid output is too weak, or None."""
    return f"confidence is below {MIN_CONFIDENCE}" if output.confidence < MIN_CONFIDENCE else None


# Several variants, such as a short and a long form of the task: VARIANTS = ("paper", "long"), the default first. What differs
# lies in documents/long/ and reference/long/; `folder.variant` says which one is loaded.
#
# Many tasks of this kind: `def instances(folder): return ("monday", "tuesday")` and `def scenario(folder, instance)`. What
# differs lies in documents/monday/ and reference/monday/, or is made here: folder.scenario(..., documents=, reference=, ...).


def scenario(folder: PackFolder) -> Scenario:
    """Return the scenario in a pack's folder."""
    subtasks = (
        Subtask(
            name="measure",
            instructions=folder.prompt("measure"),
            reads=("volumes.txt",),
            output=Readings,
            checks=(each_volume_exists,),
            # The architecture `static` verifies only at checkpoints and at the end. Without this one it would find a fault in
            # this reply after the last subtask, and run both again.
            checkpoint=True,
        ),
        Subtask(
            name="decide",
            instructions=folder.prompt("decide"),
            reads=("measure",),
            output=Decision,
            checks=(volume_was_read,),
            # `runtime_structured` asks again where this says why a valid output is too weak. It also knows
            # skip=   (outputs) -> the output to commit without a model, or None where one is needed
            # finds=  (output) -> bench.scenario.Finding against an earlier subtask, which is then asked again, or None
            sufficient=unsure,
        ),
    )
    # secrets: texts that would give the answer away. `bench check` looks for them in every document and prompt.
    # answer=("decide",) would grade that output alone and make the other one scratch.
    return folder.scenario(subtasks, grade=grade, baseline=baseline, secrets=("archive is full",))
