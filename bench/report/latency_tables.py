"""What latency is made of where it was lived through: the framework's part, and prompts that a server reads anew or again."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.frames import Run
from bench.analysis.lived import live_seconds_of
from bench.analysis.prompt_cache import PromptCache, Reading, prompt_caches
from bench.analysis.published import PublishedFigures
from bench.analysis.statistics import PartEstimate
from bench.render.labels import model_label
from bench.render.table import NOTHING, BoundedNumber, Cell, Number, Table
from bench.report.table_part import TablePart

NOT_TOLD = "not told by this server"


def latency_tables(run: Run, published: PublishedFigures) -> list[Table]:
    """Each of them only where there is something of it."""
    return [table for table in (framework_time(run, published), client_time(run), prompt_cache(run)) if table.rows]


def framework_time(run: Run, published: PublishedFigures) -> Table:
    """Return the latency of live trials by arm; of a replay, that of its recording."""
    rows: list[tuple[Cell, ...]] = []
    for model, arm in live_seconds_of(run):
        place = (arm.scenario, model_label(run, model), arm.plan, arm.architecture)
        spread = f"{arm.least:.4%} to {arm.most:.4%}"
        seconds = (Number(arm.framework, 4), Number(arm.latency, 2), Number(arm.share, 4, percent=True))
        rows.append((*place, arm.trials, *seconds, spread, _papers_share(published, arm.scenario, arm.architecture)))
    return Table(
        name="framework_time",
        title="Framework time of the live run",
        columns=(
            *("Scenario", "Model", "Fault plan", "Architecture", "Trials"),
            *("Framework s in all", "Latency s in all", "Share", "Share, by trial", "Share, paper"),
        ),
        rows=tuple(rows),
        notes=(
            "measured while the trials were lived through, and sums over them, errors left out; by trial: the least and the "
            "most",
            "of a replay these are its recording's; its own framework time is in the tables of every measure, and no part of "
            "the recorded latency",
            f"paper: framework time by latency, {published.paper.source}, Tables 1 and 2",
        ),
    )


def client_time(run: Run) -> Table:
    """By model, of calls whose time in flight was told apart from what this process took beside."""
    told = run.calls[run.calls["client_seconds"].gt(0)]
    rows: list[tuple[Cell, ...]] = []
    for model, calls in told.groupby("model", sort=False):
        client, flight = calls["client_seconds"], calls["seconds"]
        share = Number(float(client.sum() / flight.sum()), 1, percent=True)
        spread = (Number(float(client.median()), 4), Number(float(client.quantile(0.95)), 4))
        rows.append((model_label(run, str(model)), len(calls), Number(float(flight.sum()), 1), share, *spread))
    return Table(
        name="client_time",
        title="What the client took beside its calls",
        columns=("Model", "Calls", "In flight s", "Client's share of that", "Client s a call, median", "95th percentile"),
        rows=tuple(rows),
        notes=(
            "in flight: from the request's last byte to the reply's last; the client's: its own work, a connection, and what "
            "it was busy with while bytes lay ready; in no call's seconds",
            "a large share says that the process, and not the endpoint, bounded the calls at a time",
            *_at_a_time(run),
        ),
    )


def _at_a_time(run: Run) -> Iterator[str]:
    """How many calls the config allows, where that is more than one."""
    most = run.manifest.concurrency
    several = [f"{model_label(run, name)} {most[name]}" for name in run.names("model") if most.get(name, 1) != 1]
    if several:
        yield f"calls at a time at most: {', '.join(several)}"


def _papers_share(published: PublishedFigures, scenario: str, architecture: str) -> Cell:
    try:
        part, whole = (published.cell(scenario, what, architecture) for what in ("framework_seconds", "latency_seconds"))
    except KeyError:
        return "–"
    return Number(part.mean / whole.mean, 1, percent=True)


def prompt_cache(run: Run) -> Table:
    """By model, simulated ones left out: their seconds are declared."""
    caches = [cache for cache in prompt_caches(run) if not run.is_simulated(cache.model)]
    return Table(
        name="prompt_cache",
        title="Cold and warm prompt cache",
        columns=(
            *("Model", "Input", "Calls", "Input tokens", "Of these cached", "Output tokens", "API s"),
            *("ms an input token", "ms an output token"),
        ),
        rows=tuple((model_label(run, cache.model), *cells) for cache in caches for cells in _rows(cache)),
        notes=(
            "calls that were answered anew; a reply that was given once more, or none, is no reading",
            "ms a token: the calls' seconds laid out on their input and output tokens by non-negative least squares, with the "
            "jackknife's 95% interval by repetition, or by instance where there are several",
            "first attempts mostly bring a prompt that the server has not just read, later ones one that it has; where the "
            "server tells how many of its tokens were cached, these are told apart, by its own count",
        ),
    )


def _rows(cache: PromptCache) -> Iterator[tuple[Cell, ...]]:
    yield _row("of first attempts", cache.first)
    yield _row("of later attempts", cache.later)
    if cache.cold and cache.warm:
        yield _row("not cached", cache.cold)
        yield _row("cached", cache.warm)


def _row(what: str, reading: Reading) -> tuple[Cell, ...]:
    cached: Cell = NOT_TOLD if reading.cached is None else reading.cached
    taken = (_milliseconds(reading.by_input), _milliseconds(reading.by_output))
    return what, reading.calls, reading.tokens_in, cached, reading.tokens_out, Number(reading.seconds, 1), *taken


def _milliseconds(part: PartEstimate | None) -> Cell:
    if part is None:
        return NOTHING
    value, low, high = (None if limit is None else 1e3 * limit for limit in (part.value, part.low, part.high))
    return BoundedNumber(value, low, high, digits=1)


PARTS = (TablePart("latency", lambda of: latency_tables(of.run, of.published), "latency"),)
