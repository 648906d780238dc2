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
    """Return the model's name, with a mark if it is simulated or replayed, and its answer format if that is unusual."""
    parameters = run.parameters_of(model)
    answer_format, recording = parameters.answer_format, parameters.recording
    format_mark = "" if answer_format == DEFAULT or answer_format in model else f", {answer_format}"
    marks = f"{format_mark}{' (SIMULATED)' if run.is_simulated(model) else ''}"
    if recording is None:
        return f"{model}{marks}"
    concurrency = f", {recording.concurrency} calls at a time" if recording.concurrency else ""
    source = f"recorded:{recording.name}{concurrency}"
    names_model = model in recording.name  # a run is named after its models, unless someone named it otherwise
    return f"{source}{marks}" if names_model else f"{model}{marks} ({source})"


def in_brackets(label: str) -> str:
    """Return the label in brackets. Brackets inside the label become commas: `(simulated, SIMULATED)`."""
    return f"({label.replace(' (', ', ').replace(')', '')})"


MAX_LISTED_NAMES = 4
"""A sentence about more than MAX_LISTED_NAMES + 1 names lists only this many of them."""


def condition_columns(run: Run) -> tuple[TableColumn[Condition], ...]:
    """Return the columns that name the condition of a row."""
    return (
        TableColumn("Scenario", lambda condition: condition.scenario),
        TableColumn("Model", lambda condition: model_label(run, condition.model)),
        TableColumn("Fault plan", lambda condition: condition.plan),
    )


def arm_columns(run: Run) -> tuple[TableColumn[Arm], ...]:
    """Return the columns that name the arm of a row."""
    return (
        *(column.of(lambda arm: arm.condition) for column in condition_columns(run)),
        TableColumn("Architecture", lambda arm: arm.architecture),
    )


def each_arm(arms: Arms) -> Iterator[Arm]:
    """Yield every arm, in the order of the conditions and of their architectures."""
    return (arm for by_architecture in arms.values() for arm in by_architecture.values())


def condition_label(run: Run, condition: Condition) -> str:
    """Return a condition in words: its scenario, model and fault plan."""
    return f"{condition.scenario}, {model_label(run, condition.model)}, fault plan {condition.plan}"


def plan_phrase(plan: str) -> str:
    """Return "without faults", or "under" with the name of the fault plan."""
    return "without faults" if plan == FAULT_FREE else f"under {plan}"


def trial_counts_text(arms: Iterable[Arm]) -> str:
    """Return in words how many trials each arm's mean is taken over: "9 to 10 trials each"."""
    return counts_text([len(arm.usable) for arm in arms])


def counts_text(counts: Sequence[int], noun: str = "trials") -> str:
    """Return in words the least and the greatest of these counts: "9 to 10 trials each"."""
    least, most = min(counts), max(counts)
    number = f"{least}" if least == most else f"{least} to {most}"
    return f"{number} {noun if most > 1 else noun.removesuffix('s')} each".replace(" ", "\N{NO-BREAK SPACE}")


def extremes_text(
    values: Mapping[str, float | None], number_text: Callable[[float], str], unit: str = "", always_named: Collection[str] = ()
) -> str:
    """Return in words the least and the greatest value with their arms, and the values of the arms in `always_named`: "357
    tokens with static and 1,674 with monolithic"; "" if there are no values."""
    ranked = sorted((value, name) for name, value in values.items() if value is not None)
    if not ranked:
        return ""
    (low, first), (high, last) = ranked[0], ranked[-1]
    if first != last and number_text(low) == number_text(high):
        return f"{number_text(low)}{unit} with each"
    others = [(value, name) for value, name in ranked if name in {*always_named, last} - {first}]
    return join_names(
        [f"{number_text(low)}{unit} with {first}", *(f"{number_text(value)} with {name}" for value, name in others)]
    )


def join_names(names: Sequence[str], most: int = MAX_LISTED_NAMES) -> str:
    """Return names as a list in a sentence. If there are more than `most` + 1, only the first `most` are listed."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def slug(*names: str) -> str:
    """Return a file name made from names. Other characters than letters, digits, dots, underscores and dashes become dashes,
    and a long name is cut."""
    return "-".join(re.sub(r"[^A-Za-z0-9._]+", "-", name)[:60].strip("-.") or "x" for name in names)
