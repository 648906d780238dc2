"""The index of a folder's runs: the question and the results of each run."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path

import pandas as pd

from bench.common.errors import ResultsError
from bench.common.wording import plural
from bench.read.analysis.arms import Arm, arms_of, missing_trials, require_receipts
from bench.read.analysis.frames import Run, load_run
from bench.read.analysis.metrics import COST, LEAST_PRICED, PRICE, TOKENS
from bench.read.claims.judging import in_short
from bench.read.overview.kept import KeptRuns
from bench.read.render.cells import BoundedNumber, Linked
from bench.read.render.labels import each_arm, model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.report.html import group_thousands, render, source
from bench.record.archive import SUFFIX
from bench.record.config import FAULT_FREE

PAGES = ("report.html", "report.md")
HERE = Path(__file__).parent
SCRIPTS = ("page_data.js", "page_tables.js")
"""Scripts of a report's page; the script beside this file comes after them."""


WHOSE = {False: "yours", True: "came along"}


@dataclass(frozen=True, eq=False)
class ArmOfRun:
    """An arm, with the run that it belongs to."""

    run: Run
    arm: Arm

    @property
    def name(self) -> str:
        return self.run.folder.name if self.run.folder else self.run.name

    @property
    def started(self) -> str:
        """The time at which the run began, in UTC, to the minute."""
        return self.run.manifest.started[:16].replace("T", " ")

    @property
    def plan(self) -> str:
        return self.arm.condition.plan

    @property
    def model(self) -> str:
        return self.arm.condition.model


@dataclass(frozen=True, eq=False)
class ListedRun:
    """A run in the index. `run` has only the frame of trials. `verdicts` is a sentence on the paper's claims, or "". `report`
    is the path of the run's report in the folder of reports, or "". `came_along` says that the run came with the clone and is
    not the user's."""

    run: Run
    arms: tuple[ArmOfRun, ...]
    verdicts: str
    report: str
    came_along: bool

    @property
    def trials(self) -> str:
        """The number of recorded trials in words, with the planned number if some are missing."""
        recorded, missing = len(self.run.trials), missing_trials(self.run)
        return f"{recorded:,} of {recorded + missing:,}" if missing else f"{recorded:,}"

    @property
    def tags(self) -> tuple[str, ...]:
        return self.run.manifest.tags

    @property
    def labels(self) -> str:
        """In words: whose run this is, its tags and its note."""
        return "; ".join(filter(None, (WHOSE[self.came_along], ", ".join(self.tags), self.run.manifest.note)))


@dataclass(frozen=True)
class SpentInRuns:
    """The time, tokens and dollars of some trials. `dollars` is None if the cost of a trial is unknown."""

    trials: int
    tokens: int
    dollars: float | None

    @classmethod
    def of(cls, frames: Iterable[pd.DataFrame]) -> SpentInRuns:
        """Add up what the trials in these frames spent."""
        parts = list(frames)
        costs = [frame[COST.name] for frame in parts]
        known = None if any(cost.isna().any() for cost in costs) else float(sum(cost.sum() for cost in costs))
        return cls(sum(map(len, parts)), int(sum(frame[TOKENS.name].sum() for frame in parts)), known)

    @property
    def cost(self) -> str:
        return "unknown" if self.dollars is None else f"{self.dollars:.5f}"

    @property
    def text(self) -> str:
        dollars = "dollars unknown" if self.dollars is None else f"{self.cost} dollars"
        return f"{self.trials:,} trials, {self.tokens:,} tokens, {dollars}"


@dataclass(frozen=True)
class Index:
    """The runs of a folder, the newest first. `unread` has a line for each folder that cannot be read. `others` are reports
    whose run is not in the folder."""

    runs: tuple[ListedRun, ...]
    unread: tuple[str, ...]
    others: tuple[str, ...]

    def tagged(self, tags: Iterable[str]) -> Index:
        """Return the index of the runs that have all these tags."""
        return replace(self, runs=tuple(listed for listed in self.runs if set(tags) <= set(listed.tags)))

    @property
    def groups(self) -> dict[str, tuple[ListedRun, ...]]:
        """The user's runs, and the runs that came with the clone. A group without a run is left out."""
        every = {whose: tuple(listed for listed in self.runs if WHOSE[listed.came_along] == whose) for whose in WHOSE.values()}
        return {whose: runs for whose, runs in every.items() if runs}


def sum_spent(runs: Iterable[ListedRun]) -> SpentInRuns:
    """Add up what these runs spent."""
    return SpentInRuns.of(listed.run.trials for listed in runs)


def index_of(
    results: Path,
    reports: Path,
    cache: Path | None = None,
    came_along: Container[str] = (),
    show: Callable[[str], None] = lambda _: None,
) -> Index:
    """Read all runs of a folder. A run that cannot be read becomes a line of the index, and reading goes on.

    Args:
        results: The folder with a folder, or an archive, for each run.
        reports: The folder with a folder for each report.
        cache: The folder in which runs' results are kept; None to keep nothing.
        came_along: The names of the runs that came with the clone.
        show: Called with a line on how far the reading is, before each run.
    """
    kept = KeptRuns(cache)
    runs, unread = list[ListedRun](), list[str]()
    folders = {path.with_name(path.name.removesuffix(SUFFIX)) for path in results.glob("[!.]*") if _may_be_run(path)}
    pages = {page.parent.name: f"{page.parent.name}/{name}" for name in reversed(PAGES) for page in reports.glob(f"*/{name}")}
    for number, folder in enumerate(sorted(folders), 1):
        show(f"reading run {number} of {len(folders)}: {folder.name}")
        try:
            run, verdicts = kept.of(folder, partial(_read, folder))
            arms = tuple(ArmOfRun(run, arm) for arm in each_arm(arms_of(run)))
            runs.append(ListedRun(run, arms, verdicts, pages.get(folder.name, ""), folder.name in came_along))
        except ResultsError as error:
            unread.append(" ".join(str(error).split()))
    runs.sort(key=lambda listed: (listed.arms[0].started, listed.arms[0].name), reverse=True)
    others = sorted(set(pages.values()) - {listed.report for listed in runs})
    return Index(tuple(runs), tuple(unread), tuple(others))


def _may_be_run(path: Path) -> bool:
    return path.is_dir() or path.suffix == SUFFIX


def _read(folder: Path) -> tuple[Run, str]:
    """Return a run with only its trials, and its verdicts on the claims."""
    run = load_run(folder)
    require_receipts(run)
    verdicts = in_short(run, arms_of(run))
    # No row needs more, and many runs must fit into memory.
    return run.having({name: pd.DataFrame() for name in run.frames if name != "trials"}), verdicts


def index_page(index: Index) -> str:
    """Return the index as one page that needs no other file."""
    return render(
        "runs.html.j2",
        source("page.css"),
        "".join((*map(source, SCRIPTS), source("runs.js", HERE))),
        folder=HERE,
        count=len(index.runs),
        sums=[f"{whose}: {plural(len(runs), 'run')}, {sum_spent(runs).text}" for whose, runs in index.groups.items()],
        runs=_runs_table([*chain(*index.groups.values())]),
        unread=index.unread,
        others=index.others,
        simulated=any(arm.run.is_simulated(arm.model) for listed in index.runs for arm in listed.arms),
    )


# The runs


def _runs_table(runs: Sequence[ListedRun]) -> Table:
    rows = [(listed, arms) for listed in runs for arms in _by_pack_and_model(listed)]
    columns = (
        TableColumn[ListedArms]("Run", lambda row: Linked(row[1][0].name, row[0].report)),
        TableColumn[ListedArms]("Started (UTC)", lambda row: row[1][0].started),
        TableColumn[ListedArms]("Pack", lambda row: row[1][0].arm.condition.scenario),
        TableColumn[ListedArms]("Model", lambda row: model_label(row[1][0].run, row[1][0].model)),
        TableColumn[ListedArms]("Solved", lambda row: solved_said(row[1])),
        TableColumn[ListedArms]("Price of a failure", lambda row: _price_said(row[1])),
        TableColumn[ListedArms]("Trials", lambda row: _spent_in(row[1]).trials),
        TableColumn[ListedArms]("Dollars", lambda row: _spent_in(row[1]).cost),
        TableColumn[ListedArms]("Whose, tags, note", lambda row: row[0].labels),
        TableColumn[ListedArms]("Tokens", lambda row: _spent_in(row[1]).tokens),
        TableColumn[ListedArms]("The paper's claims", lambda row: row[0].verdicts or "–"),
    )
    notes = (
        "solved and price are of the architectures that did worst and best; solved is without faults, where that was run",
        "price: all tokens spent after an effective fault until what it struck stands again, with its 95% interval; it "
        f"is not measured in fewer than {LEAST_PRICED} trials",
        "trials, tokens and dollars are of the row's pack and model; dollars are known where the config has prices",
        *(
            f"{listed.arms[0].name} is not whole: {listed.trials} trials are recorded"
            for listed in runs
            if missing_trials(listed.run)
        ),
    )
    return table_of("runs", "Runs by pack and model", columns, rows, notes)


ListedArms = tuple[ListedRun, list[ArmOfRun]]


def _spent_in(arms: Iterable[ArmOfRun]) -> SpentInRuns:
    return SpentInRuns.of(arm.arm.trials for arm in arms)


def _by_pack_and_model(listed: ListedRun) -> Iterator[list[ArmOfRun]]:
    def place(arm: ArmOfRun) -> tuple[str, str]:
        return arm.arm.condition.scenario, arm.model

    return (list(arms) for _, arms in groupby(sorted(listed.arms, key=place), key=place))


def solved_said(arms: Sequence[ArmOfRun], named: bool = True) -> str:
    """Return in words what the worst and the best arm solved without faults. If no trial was without faults, it tells this of
    the first fault plan."""
    plan = next((arm.plan for arm in arms if arm.plan == FAULT_FREE), arms[0].plan)
    shares = [(arm.arm.solved(), arm.arm.architecture) for arm in arms if arm.plan == plan]
    ends = [(share.rate, f"{share.k}/{share.n}", name) for share, name in shares if share.rate is not None]
    none = "only asked" if all(arm.arm.is_instrument for arm in arms) else "not graded"
    return _between(ends, none, named) + ("" if plan == FAULT_FREE else f" under {plan}")


def _price_said(arms: Sequence[ArmOfRun]) -> str:
    means = [(arm.arm.mean(PRICE.tokens.name), arm.arm.architecture) for arm in arms]
    priced = [(mean, name) for mean, name in means if mean.n >= LEAST_PRICED]
    ends = [(mean.mean or 0.0, group_thousands(BoundedNumber.of(mean)), name) for mean, name in priced]
    return _between(ends, "not measured")


def _between(ends: Sequence[tuple[float, str, str]], none: str, named: bool = True) -> str:
    """Return in words the least and the greatest value with their names, or one value if all are equal."""
    if not ends:
        return none
    (low, least, first), (high, most, last) = (choose(ends, key=lambda end: end[0]) for choose in (min, max))
    if low == high:
        return f"{least} {first if len(ends) == 1 else 'each'}" if named else least
    return f"{least} {first} to {most} {last}" if named else f"{least} to {most}"
