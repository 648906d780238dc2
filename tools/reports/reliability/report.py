"""What the tries came to: one page, made of what is kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

from reliability.bare import CLIENTS
from reliability.kept import Attacked, Guarded, Made, Measured, Taken, Tried, read
from reliability.load import AIMS, OURS
from reliability.measured import HEADINGS, PROMISED, missed
from reliability.promises import PROMISES, Promise
from reliability.strangers import PEAK, SECONDS, held
from scipy import stats

from bench.read.render.cells import Cell, Number
from bench.read.render.escaping import escape_markdown
from bench.read.render.table import Table, markdown

PREFACE = Path(__file__).with_name("preface.md")
LOAD = Promise("load", "however many calls are in flight, none fails by our doing", "the calls of our runs under load", ())
NOT_DEFENDED = (
    "Faults of the kernel and of the interpreter, and what can be learned from timing.",
    "Of a file outside, code in the sandbox can learn that it exists, how large it is and when it was changed.",
    "Trials lost from the end of a run and chained anew, and a changed manifest: only a report's digests show them.",
    "A run names packs and architectures: those of the folder that you are in are loaded, and are not sandboxed.",
    "Where the kernel stamps no arrivals (not on Linux) a busy process reads a reply late, and its delay is the call's.",
)


def page(folder: Path) -> str:
    """Return the report of what the folder holds."""
    tried, taken, guarded = read(folder, Tried), read(folder, Taken), read(folder, Guarded)
    measured, attacked = read(folder, Measured), read(folder, Attacked)
    parts = [PREFACE.read_text(encoding="utf-8"), *_machines(read(folder, Made)), "", markdown(promises_table(tried, taken))]
    parts += [markdown(measured_table(measured))] if measured else []
    parts += [markdown(attacks_table(attacked))] if attacked else []
    parts += [markdown(load_table(taken))] if taken else []
    parts += [markdown(guards_table(guarded))] if guarded else []
    lines = [
        f"- {escape_markdown(line)}"
        for line in (
            *_missed(taken),
            *missed(measured),
            *_unheld(attacked),
            *_through(guarded),
            *_untried(tried),
            *NOT_DEFENDED,
        )
    ]
    return "\n".join([*parts, "### What does not hold, is not defended, or was not tried", "", *lines, ""])


def _machines(made: Iterable[Made]) -> Iterator[str]:
    for row in made:
        load = "" if row.load is None else f", load average {row.load:g} at the end"
        yield f"- {row.part}: {row.machine}{load}"


def upper(failures: int, tries: int) -> float:
    """Return the upper bound of a rate, one-sided, 95% (Clopper and Pearson, Biometrika 26, 1934): 3 / tries where none
    failed."""
    return 1.0 if failures >= tries else float(stats.beta.ppf(0.95, failures + 1, tries - failures))


def promises_table(tried: Iterable[Tried], taken: Iterable[Taken]) -> Table:
    counts = {row.promise: (row.tries, row.failures) for row in tried}
    ours = [load for load in taken if load.who == OURS]
    counts[LOAD.name] = sum(load.calls for load in ours), sum(load.errors for load in ours)
    rows = tuple(
        (promise.name, promise.promised, promise.tried, tries, failures, Number(upper(failures, tries), 2, percent=True))
        for promise in (*PROMISES, LOAD)
        for tries, failures in [counts.get(promise.name, (0, 0))]
        if tries
    )
    return Table(
        "promises",
        "What is promised, and how often it was tried",
        ("Promise", "What", "Tried by", "Tries", "Failures", "At most, 95%"),
        rows,
        (
            "a try is a test, an example drawn by hypothesis, a kill, or a call under load",
            "at most: the upper limit of the rate of failures among tries like these (Clopper and Pearson, one-sided)",
            "the tries were chosen and not drawn: of attacks and accidents that nobody thought of the limit says nothing",
        ),
    )


def measured_table(measured: Sequence[Measured]) -> Table:
    """Return a row for each place and a column for each measure, with what is promised of it."""
    cells = {(row.place, row.what): row.most for row in measured}
    tries = {row.place: row.tries for row in measured}
    return Table(
        "measured",
        "What the worst that was tried took, beside what is promised",
        ("Where", "Tries", *(f"{HEADINGS[what]}, at most {most:g}" for what, most in PROMISED.items()), "Kept"),
        tuple(
            (
                place,
                count,
                *(_measure(cells.get((place, what)), what) for what in PROMISED),
                "no" if any(cells.get((place, what), 0) > most for what, most in PROMISED.items()) else "yes",
            )
            for place, count in tries.items()
        ),
        (
            "the most of all tries; an empty cell is not measured there",
            "processor: the seconds of the process that reads one text of 8 MB; peak: its memory above what it held before",
            "stall: the longest time in which the event loop of `bench run` ran nothing that was due, without the time in "
            "which it had no processor; the peak beside it is the whole run's",
            "wait: the longest time in which `bench serve` did not answer somebody else, others' work on the machine included",
        ),
    )


def _measure(most: float | None, what: str) -> Cell:
    return "" if most is None else Number(most, 0 if what == "peak" else 2)


def attacks_table(attacked: Sequence[Attacked]) -> Table:
    """Return a row for each attack by a stranger's files or services."""
    return Table(
        "attacks",
        "What strangers' files and services did to the commands that read them",
        (
            *("Attack", "Commands", "Files outside", f"Peak MiB, at most {PEAK:g}", f"Longest s, at most {SECONDS:g}"),
            *("Exit codes", "Tracebacks", "Held"),
        ),
        tuple(
            (
                *(row.attack, row.commands, row.outside, Number(row.peak, 0), Number(row.seconds, 1), row.codes),
                *(row.tracebacks, "yes" if held(row) else "no"),
            )
            for row in attacked
        ),
        (
            "files outside: those that a command made, changed or removed outside of the folder in which it ran",
            "peak: the memory of a command and of what it started, of which Python and the package are about 100 MiB",
            "held: besides, what is promised of each was kept: the exit code, what is written, what is refused",
        ),
    )


def load_table(taken: Sequence[Taken]) -> Table:
    """Return the medians over the repeats."""
    places = dict.fromkeys((load.seconds, load.in_flight) for load in taken)
    return Table(
        "load",
        "Load: wall time by the ideal, beside bare clients in the same run",
        (
            *("Reply after s", "In flight", "Calls", "Repeats", "Ours", "Least", "Most", "Aim"),
            *(f"Bare {name}" for name in CLIENTS),
            *("Recorded by the endpoint's s", "Client's share", "Processor ms a call", "Peak MiB", "Errors", "Load average"),
        ),
        tuple(_row(*place, [load for load in taken if (load.seconds, load.in_flight) == place]) for place in places),
        (
            "wall: from the first request's arrival to the last reply, by the endpoint; ideal: calls × seconds / in flight",
            "medians over the repeats; ours and the bare clients in turns; the processor's time holds the start of Python",
            "recorded: the mean seconds of a call in our records by the endpoint's own",
            "client's share: what our process added to its calls' seconds, which stands in none of them",
            "load average: of the machine when ours ended; above the number of cores, others' work is in the wall times",
        ),
    )


def _row(seconds: float, in_flight: int, taken: Sequence[Taken]) -> tuple[Cell, ...]:
    ours = [load for load in taken if load.who == OURS]
    walls = sorted(load.wall for load in ours)
    bare = (Number(median(load.wall for load in taken if load.who == name), 2) for name in CLIENTS)
    return (
        *(Number(seconds, 1), in_flight, ours[0].calls, len(ours)),
        *(Number(median(walls), 2), Number(walls[0], 2), Number(walls[-1], 2), Number(AIMS.get((seconds, in_flight)), 2)),
        *bare,
        Number(median(load.recorded or 0.0 for load in ours), 3),
        Number(median(load.client or 0.0 for load in ours), 1, percent=True),
        Number(1e3 * median(load.processor for load in ours), 2),
        Number(max((load.peak for load in ours if load.peak), default=None)),
        sum(load.errors for load in ours),
        Number(median(load.load for load in ours), 1),
    )


def guards_table(guarded: Sequence[Guarded]) -> Table:
    """Return a row for each user and removal, and a column for each class of attacks."""
    classes = tuple(dict.fromkeys(row.attacks for row in guarded))
    rows = dict.fromkeys((row.user, row.removed) for row in guarded)
    cells = {(row.user, row.removed, row.attacks): row for row in guarded}
    return Table(
        "guards",
        "The sandbox with each guard taken away in turn: attacks that it held, of those tried",
        ("User", "Guard removed", "All", "At most, 95%", *(name.capitalize() for name in classes)),
        tuple(_guarded_row(*row, [cells.get((*row, name)) for name in classes]) for row in rows),
        (
            "one number: all that were tried were held; h/n: h of n were",
            "at most: the upper limit of the rate at which attacks like these get through (Clopper and Pearson, one-sided)",
            "what got through stands in guarded.csv, by name; it meets targets made for it and does no harm",
        ),
    )


def _guarded_row(user: str, removed: str, classes: Sequence[Guarded | None]) -> tuple[Cell, ...]:
    tried, held = (sum(getattr(cell, name) for cell in classes if cell) for name in ("tried", "held"))
    share = Number(upper(tried - held, tried), 1, percent=True)
    return user, removed, _share(held, tried), share, *(_share(cell.held, cell.tried) if cell else "" for cell in classes)


def _share(held: int, tried: int) -> str:
    return str(tried) if held == tried else f"{held}/{tried}"


def _missed(taken: Sequence[Taken]) -> Iterator[str]:
    for (seconds, in_flight), aim in AIMS.items():
        walls = [load.wall for load in taken if (load.seconds, load.in_flight, load.who) == (seconds, in_flight, OURS)]
        if walls and median(walls) > aim:
            yield f"With {in_flight} calls in flight, answered after {seconds:g} s, the wall time was above the aim of {aim:g}."


def _through(guarded: Iterable[Guarded]) -> Iterator[str]:
    for row in guarded:
        if row.through and row.removed == "nothing":
            yield f"With every guard in force, as {row.user}, what got through: {row.through}."
    if not guarded:
        yield "What the sandbox holds with each guard taken away was not tried in this run."


def _unheld(attacked: Iterable[Attacked]) -> Iterator[str]:
    yield from (f"By strangers' files, not held: {row.attack}." for row in attacked if not held(row))


def _untried(tried: Iterable[Tried]) -> Iterator[str]:
    yield from (f"Not tried on this machine, of {row.promise}: {row.skipped}." for row in tried if row.skipped)
