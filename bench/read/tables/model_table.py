"""The table that compares a run's models over all packs, fault plans and architectures, with the verdict of `bench compare`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import COST
from bench.read.analysis.per_solved import PerSolved
from bench.read.compare.models import ModelPair, compared_models
from bench.read.render.cells import NONE_SOLVED, BoundedNumber, Cell, Number
from bench.read.render.labels import model_label
from bench.read.render.table import Table
from bench.read.render.table_part import TablePart

MEASURES = {
    "solved": ("Solved", 1, True),
    "damage": ("Trials with damage", 1, True),
    "tokens": ("Tokens a trial", 0, False),
    "cost": ("Dollars a trial", COST.digits, False),
    "seconds": ("Seconds a trial", 2, False),
    "retry_tokens": ("Retry tokens a trial", 0, False),
    "first_round": ("First round of a repair, tokens", 0, False),
    "price": ("Price of a failure, tokens", 0, False),
}
"""Measure -> its title, its digits, and whether it is a percentage."""
EMPTY = "–"
DOLLARS_NOTE = "dollars for a solved task: all dollars, those of unsolved trials too, divided by the solved trials"


def model_table(run: Run, pairs: Sequence[ModelPair]) -> Iterator[Table]:
    """Yield a table with a row for each measure and columns for each model; no table for a single model. The further models
    are compared with the first."""
    if not pairs:
        return
    first, others = model_label(run, pairs[0].first), [model_label(run, pair.second) for pair in pairs]
    titles = ["Measure", first]
    for other in others:
        titles += [other, f"{other} − {first}", f"Finding on {other}" if len(others) > 1 else "Finding"]
    rows = [_row(pairs, name) for name in MEASURES if any(name in pair.measures for pair in pairs)]
    priced = any(amount.spent is not None for pair in pairs for amount in pair.dollars)
    if priced:
        further = (cell for pair in pairs for cell in (_dollars_of(pair.dollars[1]), EMPTY, EMPTY))
        rows.insert(1, ("Dollars for a solved task", _dollars_of(pairs[0].dollars[0]), *further))
    rows.append(("Verdict of bench compare", EMPTY, *(cell for pair in pairs for cell in (EMPTY, EMPTY, pair.verdict))))
    trials = ", ".join(dict.fromkeys(str(pair.measures["retry_tokens"].pairs) for pair in pairs))
    yield Table(
        name="models_together",
        title=f"The models side by side, over {trials} pairs of trials",
        columns=tuple(titles),
        rows=tuple(rows),
        notes=(
            "a pair: the same task, repetition, fault plan and architecture, and so the same random draws; differences are "
            "paired [95% interval]; the findings and the verdict are those of bench compare RUN --models A B",
            *([DOLLARS_NOTE] if priced else []),
            "seconds: of calls and waiting",
            *_sources_of_seconds(run),
        ),
    )


def _sources_of_seconds(run: Run) -> Iterator[str]:
    """Yield a note for each model some of whose seconds come from an earlier run."""
    for model in run.names("model"):
        if earlier := run.parameters_of(model).cache_from:
            source = f"those of {' and '.join(run.name for run in earlier)}, at the pace of its machine then"
            yield f"{model_label(run, model)}: the seconds of replies that it took over are {source}"


def _row(pairs: Sequence[ModelPair], name: str) -> tuple[Cell, ...]:
    """Return the row of a measure: the first model's value, and for each further model its value, the difference and the
    finding."""
    title, digits, percent = MEASURES[name]
    first_value = next(pair.measures[name].values[0] for pair in pairs if name in pair.measures)
    cells: list[Cell] = [title, Number(first_value, digits, percent)]
    for pair in pairs:
        if measure := pair.measures.get(name):
            difference = BoundedNumber.of(measure.difference, digits, percent)
            cells += [Number(measure.values[1], digits, percent), difference, measure.finding or EMPTY]
        else:
            cells += [EMPTY, EMPTY, EMPTY]
    return tuple(cells)


def _dollars_of(spent: PerSolved) -> Cell:
    """Return the dollars for a solved task as a cell."""
    return Number(spent.value, COST.digits) if spent.value is not None or spent.spent is None else NONE_SOLVED


PARTS = (TablePart("models_together", lambda of: model_table(of.run, of.once(compared_models)), "summary"),)
