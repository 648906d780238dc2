"""The index of the runs in a folder, with the results of each run, and its page."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

from bench.common.errors import ResultsError
from bench.common.wording import plural
from bench.read.analysis.arms import Arm, arms_of, missing_trials, require_receipts
from bench.read.analysis.frames import Run, load_run
from bench.read.analysis.metrics import COST, MIN_PRICED_TRIALS, PRICE, TOKENS
from bench.read.claims.judging import short_claims_sentence
from bench.read.overview.kept import KeptRows, RowOfModel, RunRow, SpentTrials
from bench.read.render.cells import BoundedNumber, Linked
from bench.read.render.html import TABLE_SCRIPTS, group_thousands, render, source
from bench.read.render.labels import each_arm, model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.archive import SUFFIX
from bench.record.config import FAULT_FREE

REPORT_FILES = ("report.html", "report.md")
"""The files of a report, the one to link to first."""
TEMPLATES = Path(__file__).parent
GROUP_NAMES = {False: "yours", True: "came along"}
"""Whether a run came with the clone -> the name of its group."""


@dataclass(frozen=True)
class ListedRun:
    """A run in the index. `report` is the path of its report in the folder of reports, or "". `came_along`: whether it came
    with the clone and is not the user's."""

    row: RunRow
    report: str
    came_along: bool

    @property
    def labels(self) -> str:
        """The run's group, its tags and its note, as text."""
        return "; ".join(filter(None, (GROUP_NAMES[self.came_along], ", ".join(self.row.tags), self.row.note)))


@dataclass(frozen=True)
class Index:
    """The runs of a folder, the newest first. `unread` has a line for each folder that cannot be read. `others` are paths of
    reports whose run is not in the folder."""

    runs: tuple[ListedRun, ...]
    unread: tuple[str, ...]
    others: tuple[str, ...]

    def tagged(self, tags: Iterable[str]) -> Index:
        """Return the index of the runs that have all these tags."""
        return replace(self, runs=tuple(listed for listed in self.runs if set(tags) <= set(listed.row.tags)))

    @property
    def groups(self) -> dict[str, tuple[ListedRun, ...]]:
        """The name of a group -> its runs: the user's runs, and the runs that came with the clone. A group without a run is
        left out."""
        groups: dict[str, tuple[ListedRun, ...]] = {}
        for came_along, name in GROUP_NAMES.items():
            if runs := tuple(listed for listed in self.runs if listed.came_along == came_along):
                groups[name] = runs
        return groups


def sum_spent(runs: Iterable[ListedRun]) -> SpentTrials:
    """Return the sum of what these runs spent."""
    return SpentTrials.total(listed.row.spent for listed in runs)


def index_of(
    results: Path,
    reports: Path,
    cache: Path | None = None,
    came_along: Container[str] = (),
    show: Callable[[str], None] = lambda _: None,
) -> Index:
    """Return the index of all runs of a folder. A run that cannot be read has a line in `unread`.

    Args:
        results: The folder with a folder, or an archive, for each run.
        reports: The folder with a folder for each report.
        cache: The folder in which runs' rows are kept; None to keep nothing.
        came_along: The names of the runs that came with the clone.
        show: Called with a line on how far the reading is, before each run.
    """
    rows = KeptRows(cache)
    runs, unread = list[ListedRun](), list[str]()
    paths = (path for path in results.glob("[!.]*") if path.is_dir() or path.suffix == SUFFIX)
    folders = {path.with_name(path.name.removesuffix(SUFFIX)) for path in paths}
    pages = {
        report.parent.name: f"{report.parent.name}/{name}"
        for name in reversed(REPORT_FILES)
        for report in reports.glob(f"*/{name}")
    }
    for number, folder in enumerate(sorted(folders), 1):
        show(f"reading run {number} of {len(folders)}: {folder.name}")
        try:
            row = rows.of(folder, partial(row_of, folder))
            runs.append(ListedRun(row, pages.get(folder.name, ""), folder.name in came_along))
        except ResultsError as error:
            unread.append(" ".join(str(error).split()))
    runs.sort(key=lambda listed: (listed.row.started, listed.row.name), reverse=True)
    others = sorted(set(pages.values()) - {listed.report for listed in runs})
    return Index(tuple(runs), tuple(unread), tuple(others))


def row_of(folder: Path) -> RunRow:
    """Return the row of a run in the index.

    Raises:
        ResultsError: The folder holds no run, is damaged, or a planned fault was not delivered.
    """
    run = load_run(folder)
    require_receipts(run)
    arms = arms_of(run)
    all_arms = list(each_arm(arms))
    return RunRow(
        name=folder.name,
        started=run.manifest.started[:16].replace("T", " "),
        tags=run.manifest.tags,
        note=run.manifest.note,
        missing=missing_trials(run),
        solved=_solved_text(all_arms, with_names=False),
        simulated=any(run.is_simulated(arm.condition.model) for arm in all_arms),
        verdicts=short_claims_sentence(run, arms),
        models=tuple(_row_of_model(run, group) for group in _by_pack_and_model(all_arms)),
    )


def _row_of_model(run: Run, arms: Sequence[Arm]) -> RowOfModel:
    """Return the results of a model on a pack, over all its arms there."""
    condition, frames = arms[0].condition, [arm.trials for arm in arms]
    costs = [frame[COST.name] for frame in frames]
    dollars = None if any(cost.isna().any() for cost in costs) else float(sum(cost.sum() for cost in costs))
    tokens = int(sum(frame[TOKENS.name].sum() for frame in frames))
    return RowOfModel(
        pack=condition.scenario,
        model=model_label(run, condition.model),
        solved=_solved_text(arms),
        price=_price_text(arms),
        spent=SpentTrials(trials=sum(map(len, frames)), tokens=tokens, dollars=dollars),
    )


def index_page(index: Index) -> str:
    """Return the index as one page that needs no other file."""
    return render(
        "runs.html.j2",
        source("page.css"),
        "".join((*map(source, TABLE_SCRIPTS), source("runs.js", TEMPLATES))),
        folder=TEMPLATES,
        count=len(index.runs),
        sums=[f"{group}: {plural(len(runs), 'run')}, {sum_spent(runs).text}" for group, runs in index.groups.items()],
        runs=_runs_table([*chain(*index.groups.values())]),
        unread=index.unread,
        others=index.others,
        simulated=any(listed.row.simulated for listed in index.runs),
    )


# The runs


def _runs_table(runs: Sequence[ListedRun]) -> Table:
    """Return a table with a row for each pack and model of each run."""
    rows = [(listed, row) for listed in runs for row in listed.row.models]
    columns = (
        TableColumn[ListedModel]("Run", lambda row: Linked(row[0].row.name, row[0].report)),
        TableColumn[ListedModel]("Started", lambda row: row[0].row.started[:10]),
        TableColumn[ListedModel]("Pack", lambda row: row[1].pack),
        TableColumn[ListedModel]("Model", lambda row: row[1].model),
        TableColumn[ListedModel]("Solved", lambda row: row[1].solved),
        TableColumn[ListedModel]("Price of a failure", lambda row: row[1].price),
        TableColumn[ListedModel]("Trials", lambda row: row[1].spent.trials),
        TableColumn[ListedModel]("Whose, tags, note", lambda row: row[0].labels),
        TableColumn[ListedModel]("Tokens", lambda row: row[1].spent.tokens),
        TableColumn[ListedModel]("Dollars", lambda row: row[1].spent.cost),
        TableColumn[ListedModel]("The paper's claims", lambda row: row[0].row.verdicts or "–"),
    )
    notes = (
        "solved and price are of the architectures that did worst and best; solved is without faults, where that was run",
        "price: all tokens spent after an effective fault until what it struck stands again, with its 95% interval; it "
        f"is not measured in fewer than {MIN_PRICED_TRIALS} trials",
        "trials, tokens and dollars are of the row's pack and model; dollars are known where the config has prices",
        *(f"{listed.row.name} is not whole: {listed.row.trials} trials are recorded" for listed in runs if listed.row.missing),
    )
    return table_of("runs", "Runs by pack and model", columns, rows, notes)


ListedModel = tuple[ListedRun, RowOfModel]


def _by_pack_and_model(arms: Iterable[Arm]) -> Iterator[list[Arm]]:
    """Yield the arms of each pack and model."""

    def pack_and_model(arm: Arm) -> tuple[str, str]:
        return arm.condition.scenario, arm.condition.model

    return (list(group) for _, group in groupby(sorted(arms, key=pack_and_model), key=pack_and_model))


def _solved_text(arms: Sequence[Arm], with_names: bool = True) -> str:
    """Return in words what the worst and the best arm solved without faults; under the first fault plan, if no trial was
    without."""
    plans = [arm.condition.plan for arm in arms]
    plan = FAULT_FREE if FAULT_FREE in plans else plans[0]
    shares = [(arm.solved(), arm.architecture) for arm in arms if arm.condition.plan == plan]
    rates = [(share.rate, f"{share.k}/{share.n}", name) for share, name in shares if share.rate is not None]
    placeholder = "only asked" if all(arm.is_instrument for arm in arms) else "not graded"
    return _between(rates, placeholder, with_names) + ("" if plan == FAULT_FREE else f" under {plan}")


def _price_text(arms: Sequence[Arm]) -> str:
    """Return in words the least and the greatest price of a failure, with the architectures."""
    means = [(arm.mean(PRICE.tokens.name), arm.architecture) for arm in arms]
    priced = [(mean, name) for mean, name in means if mean.n >= MIN_PRICED_TRIALS]
    prices = [(mean.mean or 0.0, group_thousands(BoundedNumber.of(mean)), name) for mean, name in priced]
    return _between(prices, "not measured")


def _between(values: Sequence[tuple[float, str, str]], placeholder: str, with_names: bool = True) -> str:
    """Return in words the least and the greatest of the values, each given as (value, its text, a name); one text if all are
    equal; `placeholder` if there are none."""
    if not values:
        return placeholder
    (low, least, least_name), (high, most, most_name) = min(values, key=itemgetter(0)), max(values, key=itemgetter(0))
    if low == high:
        return f"{least} {least_name if len(values) == 1 else 'each'}" if with_names else least
    return f"{least} {least_name} to {most} {most_name}" if with_names else f"{least} to {most}"
