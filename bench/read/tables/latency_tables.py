"""Tables of the parts of live latency: the framework's time, and a cold or warm prompt cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bench.read.analysis.frames import Run
from bench.read.analysis.lived import live_seconds_of
from bench.read.analysis.published import PublishedFigures
from bench.read.analysis.statistics import PartEstimate
from bench.read.render.cells import NOTHING, BoundedNumber, Cell, Number
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.report.table_part import TablePart
from bench.read.tables.prompt_cache import PromptCache, Reading, prompt_caches
from bench.record.history import LiveSeconds

NOT_TOLD = "not told by this server"
ModelAndArm = tuple[str, LiveSeconds]


def latency_tables(run: Run, published: PublishedFigures) -> list[Table]:
    """Return the tables that have rows."""
    return [table for table in (framework_time(run, published), prompt_cache(run)) if table.rows]


def framework_time(run: Run, published: PublishedFigures) -> Table:
    """Return the framework's part of live latency by arm. For a replay it is the part in its recording."""
    papers = TableColumn[ModelAndArm](
        "Share, paper", lambda row: _papers_share(published, row[1].scenario, row[1].architecture)
    )
    columns = (
        TableColumn[ModelAndArm]("Scenario", lambda row: row[1].scenario),
        TableColumn[ModelAndArm]("Model", lambda row: model_label(run, row[0])),
        TableColumn[ModelAndArm]("Fault plan", lambda row: row[1].plan),
        TableColumn[ModelAndArm]("Architecture", lambda row: row[1].architecture),
        TableColumn[ModelAndArm]("Trials", lambda row: row[1].trials),
        TableColumn[ModelAndArm]("Framework s in all", lambda row: Number(row[1].framework, 4)),
        TableColumn[ModelAndArm]("Latency s in all", lambda row: Number(row[1].latency, 2)),
        TableColumn[ModelAndArm]("Share", lambda row: Number(row[1].share, 4, percent=True)),
        TableColumn[ModelAndArm]("Share, by trial", lambda row: f"{row[1].least:.4%} to {row[1].most:.4%}"),
        *([papers] if published.has_figures else []),
    )
    notes = (
        "sums over the live trials, without those that ended in an error; by trial: the lowest and the highest share",
        "for a replay, these are the times of its recording; the replay's framework time is in the tables of every measure "
        "and is not part of the recorded latency",
        *([f"paper: framework time by latency, {published.paper.source}, Tables 1 and 2"] if published.has_figures else []),
    )
    return table_of("framework_time", "Framework time of the live run", columns, live_seconds_of(run), notes)


def _papers_share(published: PublishedFigures, scenario: str, architecture: str) -> Cell:
    try:
        part, whole = (published.cell(scenario, what, architecture) for what in ("framework_seconds", "latency_seconds"))
    except KeyError:
        return "–"
    return Number(part.mean / whole.mean, 1, percent=True)


def prompt_cache(run: Run) -> Table:
    """Show how long each model took to read a prompt, with a cold and with a warm cache."""
    columns = (
        TableColumn[ReadingOfModel]("Model", lambda row: model_label(run, row.model)),
        TableColumn[ReadingOfModel]("Input", lambda row: row.what),
        TableColumn[ReadingOfModel]("Calls", lambda row: row.reading.calls),
        TableColumn[ReadingOfModel]("Input tokens", lambda row: row.reading.tokens_in),
        TableColumn[ReadingOfModel](
            "Of these cached", lambda row: NOT_TOLD if row.reading.cached is None else row.reading.cached
        ),
        TableColumn[ReadingOfModel]("Output tokens", lambda row: row.reading.tokens_out),
        TableColumn[ReadingOfModel]("API s", lambda row: Number(row.reading.seconds, 1)),
        TableColumn[ReadingOfModel]("ms an input token", lambda row: _milliseconds(row.reading.by_input)),
        TableColumn[ReadingOfModel]("ms an output token", lambda row: _milliseconds(row.reading.by_output)),
    )
    notes = (
        "only calls that the server answered; failed calls and calls with a reused reply are left out",
        "ms a token: the calls' seconds are fitted to their input and output tokens by non-negative least squares; 95% "
        "interval of the jackknife by instance, or by repetition if there is only one instance",
        "most first attempts have a prompt that the server has not just read, and later attempts one that it has; if the "
        "server reports its cached tokens, they have a row of their own, by its count",
    )
    readings = (reading for cache in prompt_caches(run) for reading in _readings(cache))
    return table_of("prompt_cache", "Cold and warm prompt cache", columns, readings, notes)


class ReadingOfModel(NamedTuple):
    model: str
    what: str
    reading: Reading


def _readings(cache: PromptCache) -> Iterator[ReadingOfModel]:
    yield ReadingOfModel(cache.model, "of first attempts", cache.first)
    yield ReadingOfModel(cache.model, "of later attempts", cache.later)
    if cache.cold and cache.warm:
        yield ReadingOfModel(cache.model, "not cached", cache.cold)
        yield ReadingOfModel(cache.model, "cached", cache.warm)


def _milliseconds(part: PartEstimate | None) -> Cell:
    if part is None:
        return NOTHING
    value, low, high = (None if limit is None else 1e3 * limit for limit in (part.value, part.low, part.high))
    return BoundedNumber(value, low, high, digits=1)


PARTS = (TablePart("latency", lambda of: latency_tables(of.run, of.published), "latency"),)
