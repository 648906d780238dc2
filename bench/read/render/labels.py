"""Labels of models and arms. A simulated model is always marked, and a recorded model names its recording."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from bench.read.analysis.arms import Arm, Arms, Condition
from bench.read.analysis.frames import Run
from bench.read.render.table import TableColumn
from bench.record.config import FAULT_FREE
from bench.record.formats import DEFAULT


def model_label(run: Run, model: str) -> str:
    """Return the model's name, marked if it is simulated, replayed, or asked in a form that its name does not say."""
    parameters = run.parameters_of(model)
    asked, recording = parameters.answer_format, parameters.recording
    apart = "" if asked == DEFAULT or asked in model else f", {asked}"
    simulated = f"{apart}{' (SIMULATED)' if run.is_simulated(model) else ''}"
    if recording is None:
        return f"{model}{simulated}"
    at_a_time = f", {recording.concurrency} calls at a time" if recording.concurrency else ""
    source = f"recorded:{recording.name}{at_a_time}"
    is_told = model in recording.name  # a run is named after its models, unless someone named it otherwise
    return f"{source}{simulated}" if is_told else f"{model}{simulated} ({source})"


def in_brackets(label: str) -> str:
    """Return the label in brackets. Brackets inside the label become commas: `(simulated, SIMULATED)`."""
    return f"({label.replace(' (', ', ').replace(')', '')})"


MOST_NAMED = 4
"""How many names a sentence lists if there are more than MOST_NAMED + 1."""


def condition_columns(run: Run) -> tuple[TableColumn[Condition], ...]:
    """Return the columns that say where a row was measured."""
    return (
        TableColumn("Scenario", lambda condition: condition.scenario),
        TableColumn("Model", lambda condition: model_label(run, condition.model)),
        TableColumn("Fault plan", lambda condition: condition.plan),
    )


def arm_columns(run: Run) -> tuple[TableColumn[Arm], ...]:
    """Return the columns that say which arm a row describes."""
    return (
        *(column.of(lambda arm: arm.condition) for column in condition_columns(run)),
        TableColumn("Architecture", lambda arm: arm.architecture),
    )


def each_arm(arms: Arms) -> Iterator[Arm]:
    """Yield every arm, in the order of its condition and architecture."""
    return (arm for named in arms.values() for arm in named.values())


def condition_label(run: Run, condition: Condition) -> str:
    """Return a condition in words: its scenario, model and fault plan."""
    return f"{condition.scenario}, {model_label(run, condition.model)}, fault plan {condition.plan}"


def plan_phrase(plan: str) -> str:
    """Return "without faults", or "under" and the plan's name."""
    return "without faults" if plan == FAULT_FREE else f"under {plan}"


def trial_counts_text(arms: Iterable[Arm]) -> str:
    """Return in words over how many trials each mean is taken."""
    return counts_text([len(arm.usable) for arm in arms])


def counts_text(counts: Sequence[int], noun: str = "trials") -> str:
    """Return in words over how many trials each value of a panel is taken: "10 trials each"."""
    least, most = min(counts), max(counts)
    number = f"{least}" if least == most else f"{least} to {most}"
    return f"{number} {noun if most > 1 else noun.removesuffix('s')} each".replace(" ", "\N{NO-BREAK SPACE}")


def extremes_text(
    values: Mapping[str, float | None], shown: Callable[[float], str], unit: str = "", about: Collection[str] = ()
) -> str:
    """Return in words the least and the greatest value with their arms, and the values of the arms in `about`: "357 tokens with
    static and 1,674 with monolithic"; "" if there are none."""
    known = sorted((value, name) for name, value in values.items() if value is not None)
    if not known:
        return ""
    (low, first), (high, last) = known[0], known[-1]
    if first != last and shown(low) == shown(high):
        return f"{shown(low)}{unit} with each"
    others = [(value, name) for value, name in known if name in {*about, last} - {first}]
    return join_names([f"{shown(low)}{unit} with {first}", *(f"{shown(value)} with {name}" for value, name in others)])


def join_names(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return names as a sentence lists them. Of many names only the first few are listed."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def slug(*names: str) -> str:
    """Make a file name from names. All but letters, digits, dots, underscores and dashes becomes dashes; a long name is cut."""
    return "-".join(re.sub(r"[^A-Za-z0-9._]+", "-", name)[:60].strip("-.") or "x" for name in names)
